"""handle: what a program holds: the interface of a running topology, and the queues that its readers empty.

In: What sinks emit. Out: Result batches, in order. Imports graph, tasks and entry.
"""
