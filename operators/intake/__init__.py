"""intake: the gate, which merges many sources into one order; rows that are late or out of order.

In: batches of physical sources. Out: steps of rows in the total order. Imports query and values.
"""
