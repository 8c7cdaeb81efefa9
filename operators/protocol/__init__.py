"""protocol: the messages between router, elements and collector, and the streams that carry them.

In: keys, intervals, live ranges and matches as arrays. Out: the same as Arrow batches, and back. Imports indexes and
topology, and no other room.
"""
