"""bolts: components written as one function, or as a class with one method.

In: batches, event time and ticks for a task, and the user's code. Out: what that code returns, as batches.
Imports graph, entry (frames become Arrow tables).
"""
