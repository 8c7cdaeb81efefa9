"""local: the runtime inside this process, in which a few threads take turns over all tasks.

In: a `Topology`. Out: a `RunningTopology`. Imports checks, all rooms except on_ray.
"""
