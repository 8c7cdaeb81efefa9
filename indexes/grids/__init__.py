"""grids: a grid over two dimensions, for two bands.

In: Keys and intervals of any number of dimensions; two are gridded, the others filter. Out: Matches. Imports
kernels and one_key.
"""
