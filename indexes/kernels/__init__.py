"""kernels: columns and the kernels that every index is made of; the interface of a window index,
and the linear scan that the others are tested against.

In: Plain arrays. Out: Plain arrays. Imports nothing else of ours.
"""
