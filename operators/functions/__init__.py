"""functions: the built-in functions of conditions and select lists, in one table (`builtins`).

In: columns and their types. Out: columns, the type of a result, or why arguments do not fit.
Imports the kernels of indexes only.
"""
