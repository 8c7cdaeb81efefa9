"""split_join: SplitJoin: distribution tree, join cores, collection tree.

In: Keys, intervals and live ranges. Out: Answers. Imports shared.
"""
