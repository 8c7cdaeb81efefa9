"""tasks: how one task runs: its bounded inbox, its loop, its counters, and the queue that spills to disk.

In: Messages for one task. Out: What the task emits, and metrics. Imports graph.
"""
