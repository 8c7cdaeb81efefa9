"""graph: the description of a topology: messages, components, groupings, the builder and the checked graph.

In: a user's components and subscriptions. Out: a frozen, picklable `Topology`. Imports no other room.
"""
