"""scans: the nested loop, which compares a probe with every row.

In: Keys and intervals of any number of dimensions. Out: Matches. Imports kernels and permutations.
"""
