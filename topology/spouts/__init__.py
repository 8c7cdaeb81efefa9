"""spouts: rows that a topology fetches by itself, from a source with partitions and offsets.

In: a `Source`, such as files, an iterable, or a connector of the user's. Out: a spout that reads it inside a topology,
an input in its place where a state is kept, or rows sent to an input with their offsets.
Imports graph, entry, handle, delivery.
"""
