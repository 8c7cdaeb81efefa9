"""scans: the nested loop, which compares each probe row with every row of the window.

In: Keys and intervals of any number of dimensions. Out: Matches. Imports kernels and permutations.
"""
