"""query: a join as its user describes it: expressions, windows, kinds, orderings, and the normal form of a condition.

In: conditions, windows and options as the user wrote them. Out: frozen, picklable descriptions.
Imports the sides of protocol, the table of functions, and the check of whole numbers from indexes.
"""
