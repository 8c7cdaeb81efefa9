"""multiway: joins of more than two streams.

In: steps from the gate, one batch per stream and a punctuation. Out: result rows in result order, then the punctuation.
Imports protocol, query, values, bounds, intake, routing, results, engines.
"""
