"""intake: from many sources to one order. The gate, and what it does with rows that are late or out of order.

In: batches of physical sources. Out: steps of rows in the total order. Imports query and values.
"""
