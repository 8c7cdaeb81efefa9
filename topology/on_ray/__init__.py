"""on_ray: the runtime on Ray, whose workers hold one or more tasks. The only room that imports ray.

In: a `Topology`. Out: a `RunningTopology`, the client of a controller that owns the workers. Imports all rooms except
local. Read in this order: charter, lease, worker_actor, worker, reservation,
workforce, recovery, controller; launching, running, attaching, runtime.
"""
