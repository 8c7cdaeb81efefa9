"""grids: the grid for two bands.

In: Keys and intervals of two dimensions. Out: Matches. Imports kernels, one_key.
"""
