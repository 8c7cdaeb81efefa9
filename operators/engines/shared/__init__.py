"""shared: what engines have in common: the interface, steps, the work queue, the choice of an index.

In: Keys, intervals and live ranges. Out: Answers. Imports the rooms before engines.
"""
