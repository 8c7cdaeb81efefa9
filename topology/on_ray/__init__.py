"""on_ray: the runtime on Ray: an actor for each task. The only room that imports ray.

In: A `Topology`. Out: A `RunningTopology`. Imports all rooms but local.
"""
