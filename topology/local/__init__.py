"""local: the runtime inside this process: a few threads take turns over all tasks.

In: A `Topology`. Out: A `RunningTopology`. Imports all rooms but on_ray.
"""
