"""routing: from rows to positions, keys, intervals and live ranges, which is all that the elements know.

In: steps from the gate. Out: rows that elements store and probe with, and the payload. Imports protocol, functions,
query, values, bounds and intake.
"""
