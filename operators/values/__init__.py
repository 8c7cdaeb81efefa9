"""values: what types mean. Exact arithmetic and comparison of Arrow columns; keys and the intervals that rows ask for.

In: expressions and columns. Out: columns, keys, intervals. Imports query.
"""
