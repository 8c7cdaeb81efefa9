"""engines: how matching is laid out as processing elements, one engine for each of the papers.

In: keys, intervals and live ranges. Out: positions that match. Imports all rooms before it, and indexes.

`auto_engine` chooses SPOJoin or IndexJoin, which users run. The other engines, and the options that an engine's
docstring lists "for comparison", are there to compare papers; they give the same results.
"""
