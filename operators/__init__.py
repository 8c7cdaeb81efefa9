"""operators: joins built of processing elements.

In flow: streams of rows, from any number of physical sources. Out flow: result rows, exact and in order.
May import: indexes, topology, and sqlglot for query text.

The front door is here: join (describe and run), join_topology (how it becomes a graph), running_join, explanation. Then
follow the data through the rooms, each of which imports only those before it:

- protocol: the messages between router, elements and collector; the two sides
- query:   what is asked: expressions, SQL, windows, kinds, the normal form of a condition
- values:  what types mean: exact evaluation, keys, the intervals that rows ask for
- intake:  the gate: many sources, one order; late and idle ones
- routing: positions, keys, intervals and live ranges, which is all that elements know
- results: the collector: order, kinds, payload, what is tested on pairs
- engines: the elements of each paper, between router and collector
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
