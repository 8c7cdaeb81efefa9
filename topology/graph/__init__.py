"""graph: the description of a topology: messages, components, groupings, the builder and the checked graph.

In: A user's components and subscriptions. Out: A frozen, picklable `Topology`. Imports nothing else of ours.
"""
