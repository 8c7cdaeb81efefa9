"""simulated: stand-ins for what a driver supplies, in one thread, decided by a seed.

In: calls of the ports that the rooms before declare, and a schedule. Out: their effects, with faults. Imports graph,
durable, tasks, journal, entry, handle, edges, process. Used by tests, by `interlace.testing`, and by whoever wants to
know what a program of theirs does when a machine fails.

Read in this order: disk, edge, worker, life.
"""
