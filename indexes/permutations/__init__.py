"""permutations: SPO-Join's blocks: sorted runs, permutations between them, searches over both, trees for large answers.

In: Keys and intervals of several dimensions. Out: Matches and counts. Imports kernels.
"""
