"""tasks: how one task runs: its bounded inbox, its loop, its counters, and the queue that spills to disk.

In: messages for one task. Out: the messages it emits, and metrics. Imports graph.
"""
