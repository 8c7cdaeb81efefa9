"""index_join: the parallel index join of the PIM-Tree paper: threads that share one index per window.

In: Keys, intervals and live ranges. Out: Answers. Imports shared.
"""
