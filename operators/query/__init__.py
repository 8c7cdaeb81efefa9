"""query: what is asked. Column expressions, SQL text, windows, kinds and orderings, and the normal form of a condition.

In: what a user writes. Out: descriptions, frozen and picklable. Imports nothing of the other rooms.
"""
