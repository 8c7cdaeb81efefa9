"""engines: how matching is laid out as processing elements, one engine for each of the papers.

In: keys, intervals and live ranges. Out: positions that match. Imports all rooms but the front door, and indexes.
"""
