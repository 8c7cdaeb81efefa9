"""handshake_join: handshake join: the chain of cores that SplitJoin compares itself with.

In: Keys, intervals and live ranges. Out: Answers. Imports shared.
"""
