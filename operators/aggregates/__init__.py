"""aggregates: what the values of a row's matches add up to.

In: the values of one side's rows, by position, and the positions that rows match. Out: one value per row.
Imports protocol, query, values and routing.
"""
