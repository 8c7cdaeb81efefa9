"""placement: which tasks share a worker process, and what each worker asks of the cluster.

In: a topology, the nodes of a cluster, and the user's wish. Out: a frozen `Placement`; nothing is started, and the same
arguments give the same placement in every process. Imports the room graph.
"""
