"""trees: B+-trees and the indexes built from them: chained index, IM-Tree, PIM-Tree, leveled trees.

In: Keys and intervals; one dimension is indexed, the others filter. Out: Matches. Imports kernels and one_key.
"""
