"""pan: PanJoin's structures of one subwindow: BI-Sort, RaP-Table, WiB+-Tree.

In: Keys and intervals of one dimension. Out: Matches, and records of ranges. Imports kernels, one_key.
"""
