"""parts: topologies inside topologies.

In: components, subscriptions, and whole topologies, such as that of a join, each under a name. Out: one graph, in which
the inputs of an included topology take the rows of other components. Imports graph, entry.
"""
