"""sql: parses SQL text into the same descriptions that Python users write.

In: SQL text. Out: expressions, windows and select lists of the query room. Imports protocol, functions and query.
"""
