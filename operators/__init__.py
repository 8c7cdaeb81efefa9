"""operators: joins built of processing elements.

In flow: streams of rows, from any number of physical sources. Out flow: result rows, exact and in order.
May import: indexes, topology, and sqlglot for query text.

The front door is here: join (describe and run), join_topology (how it becomes a graph), running_join, explanation. Then
follow the data through the rooms, each of which imports only those before it:

- query:   what is asked: expressions, SQL, windows, kinds, the normal form of a condition
- values:  what types mean: exact evaluation, keys, the intervals that rows ask for
- intake:  the gate: many sources, one order; late and idle ones
- routing: positions, keys, intervals and live ranges, which is all that elements know
- results: the collector: order, kinds, payload, what is tested on pairs
- engines: the elements of each paper, between router and collector
"""

from operators.engines.engine import Engine
from operators.engines.handshake_join import HandshakeJoin
from operators.engines.index_join import IndexJoin
from operators.engines.pan_join import PanJoin
from operators.engines.scale_join import ScaleJoin
from operators.engines.split_join import SplitJoin
from operators.engines.spo_join import SPOJoin
from operators.join import StreamJoin
from operators.query.errors import (
    DurationError,
    JoinError,
    PredicateError,
    QueryError,
    UnboundedStateWarning,
    WindowError,
)
from operators.query.expressions import col, stream
from operators.query.functions import Function, function
from operators.query.orderings import EveryK, Ordering
from operators.query.windows import CountWindow, TimeWindow, UnboundedWindow
from operators.running_join import RunningJoin

__all__ = [
    "CountWindow",
    "DurationError",
    "Engine",
    "EveryK",
    "Function",
    "HandshakeJoin",
    "IndexJoin",
    "JoinError",
    "Ordering",
    "PanJoin",
    "PredicateError",
    "QueryError",
    "RunningJoin",
    "SPOJoin",
    "ScaleJoin",
    "SplitJoin",
    "StreamJoin",
    "TimeWindow",
    "UnboundedStateWarning",
    "UnboundedWindow",
    "WindowError",
    "col",
    "function",
    "stream",
]
