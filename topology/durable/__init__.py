"""durable: logs that survive, on a local disk or an object store.

In: records (a small JSON header and record batches), in the order in which they are appended.
Out: the same records after any failure, from the start of any segment that is kept.
Imports graph, for its errors. No clock and no socket; the one thread is in group_commit.

Read in this order: record, names, group (what is written); disk, store (where to); take_over, log (the protocol).
"""
