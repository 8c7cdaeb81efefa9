"""handle: the handle of a running topology that a program holds, the tokens that let clients in, and
the queues that readers of results empty.

In: the rows that reach sinks. Out: result batches, in order. Imports graph, placement, tasks, steps and entry.
"""
