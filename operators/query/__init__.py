"""query: what is asked. Column expressions, SQL text, windows, kinds and orderings, and the normal form of a condition.

In: what a user writes. Out: descriptions, frozen and picklable. Imports the sides of protocol only.
"""
