"""operators: joins built of processing elements.

In: rows of streams, from any number of physical sources. Out: result rows, exact and in order.
Imports indexes, topology, and sqlglot for query text.

Start with join (what the user writes), resolved_join (what follows from it), join_topology (the graph), running_join
and join_run. Then follow the data through the rooms, each of which imports only those before it:

- protocol: the messages between router, elements and collector; the two sides
- functions: the built-in functions of values, in one table
- query:    expressions, windows, kinds, the normal form of a condition
- sql:      conditions and whole queries as text
- values:   exact evaluation of expressions, keys of every type
- bounds:   the closed intervals of keys that a row probes with
- intake:   the gate merges many sources into one order; late rows, idle sources
- routing:  turns rows into positions, keys, intervals and live ranges, which is all that elements see
- aggregates: exact sums, extremes and counts over matches
- results:  the collector: order, kinds, payload, tests on pairs
- engines:  the elements of each paper, between router and collector
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
