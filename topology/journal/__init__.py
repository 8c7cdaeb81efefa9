"""journal: what a topology must not forget, as records of one log.

In: what happens: rows that are sent, sources that come and end, steps that are decided, results that are acknowledged.
Out: after any failure, the same state: `Image` says what has happened, `Replay` repeats it.
Imports graph, durable and tasks.

Everything else in a topology is a function of these records. So it is a cache, and can be made again.

Read in this order: events (what is recorded), image (what follows from it), journal (the writer), opening,
replay, recording (how a task is driven with a journal), step_rows (for errors), snapshots, snapshot_rounds.
"""
