"""one_key: what indexes over one key share, and the ones that need no tree: hash and sorted lists.

In: Keys and intervals of one dimension. Out: Matches. Imports kernels.
"""
