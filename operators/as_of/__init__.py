"""As-of joins: one element that stands where other joins have router, elements and collector.

In: the steps of the gate, one batch per stream, then a punctuation.
Out: result rows, in the order of the law, then the punctuation.
Imports protocol, query, values, intake, routing and results.
"""
