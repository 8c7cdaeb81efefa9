"""shared: parts that several engines use: the interface, steps, answering, store-and-probe, the choice of an index.

In: Keys, intervals and live ranges. Out: Answers. Imports the rooms before engines.
"""
