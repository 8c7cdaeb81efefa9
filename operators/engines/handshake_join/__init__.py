"""handshake_join: the chain of cores that SplitJoin and PIM-Tree compare themselves with. For comparison.

In: Keys, intervals and live ranges. Out: Answers. Imports shared.
"""
