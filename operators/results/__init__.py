"""results: from matches to result rows. The collector, order, kinds, payload, and conditions tested on pairs.

In: positions that matched, and payload. Out: result rows. Imports protocol, query, values, bounds, intake,
routing and aggregates.
"""
