"""pan: PanJoin's structures, each over a chain of subwindows: BI-Sort, RaP-Table, WiB+-Tree.

In: Keys and intervals; one dimension is indexed, the others filter. Out: Matches; BI-Sort also gives ranges of
ranks (`Records`). Imports kernels and one_key.
"""
