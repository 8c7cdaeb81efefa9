"""durable: logs that survive, on a local disk or an object store.

In: records (a small JSON header and record batches), in the order in which they are appended.
Out: the same records after any failure, from the start of any segment that is kept.
Imports graph, for its errors. No clock and no socket; the one thread is in group_commit.

A process takes a log over, reads what it needs, and goes on:

    taken = take_over(open_store("/var/state", "input"))
    for position, record in taken.records(taken.segments[-1]) if taken.segments else ():
        ...  # the first one is the start record of the last segment
    log = taken.start(Record({"next": {"source": 7}}))  # from which everything after can start
    committer = GroupCommit(log)
    committer.append(Record({"producer": "p", "source": "s", "offset": 7}, (rows,)), then=acknowledge)

Read in this order: record, names, group (what is written); disk, store (where to); take_over, log (the protocol).
"""
