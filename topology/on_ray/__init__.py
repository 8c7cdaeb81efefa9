"""on_ray: the runtime on Ray, with one actor per task. The only room that imports ray.

In: a `Topology`. Out: a `RunningTopology`. Imports all rooms except local.
"""
