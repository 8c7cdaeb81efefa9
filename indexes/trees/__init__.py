"""trees: B+-trees and what is built of them: chained index, IM-Tree, PIM-Tree, leveled trees.

In: Keys and intervals of one dimension. Out: Matches. Imports kernels and one_key.
"""
