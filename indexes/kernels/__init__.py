"""kernels: the columns that flow through an index, the kernels that indexes share, and their interface.

`window_index` is the interface; `linear_scan` is the reference that every index is tested against.

In: Arrays of keys, bounds and positions. Out: Arrays of matches, orders and bits. Imports no other room.
"""
