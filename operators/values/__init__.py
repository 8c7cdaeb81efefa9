"""values: the meaning of types. Exact arithmetic and comparison of Arrow columns, and the keys of their values.

In: expressions and columns. Out: columns and keys. Imports protocol, functions and query.
"""
