"""scale_join: ScaleJoin: processing threads that each store a share of the rows and probe with all.

In: Keys, intervals and live ranges. Out: Answers. Imports shared.
"""
