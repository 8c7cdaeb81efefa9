"""routing: from rows to positions, keys, intervals and live ranges, which is all that the elements know.

In: steps from the gate. Out: what elements store and probe, and the payload. Imports query, values, bounds and intake.
"""
