"""bounds: the keys of the other side that satisfy a comparison, as one closed interval per row and dimension.

In: a condition and columns. Out: keys and intervals. Imports protocol, functions, query and values.
"""
