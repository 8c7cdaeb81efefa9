"""one_key: the base of all indexes over one key, and two that need no tree: a hash table and a sorted list.

In: Keys and intervals; one dimension is indexed, the others filter. Out: Matches. Imports kernels.
"""
