"""operators: joins built of processing elements.

In flow: streams of rows, from any number of physical sources. Out flow: result rows, exact and in order.
May import: indexes, topology, and sqlglot for query text.

Follow the data by opening: join (the front door), gate, router, then the elements of an engine, collector. Engines and
their elements: spo_join (mutable_element or predicate_element and logical_and_element, permutation_element,
po_join_element, state_cache), index_join (work_queue, index_join_element), pan_join (pan_manager, pan_worker,
pan_mirror), scale_join (scale_gate, processing_thread), split_join (distribution_tree, join_core, collection_tree),
handshake_join (handshake_core).
"""

from operators.engine import Engine
from operators.errors import (
    DurationError,
    JoinError,
    PredicateError,
    QueryError,
    UnboundedStateWarning,
    WindowError,
)
from operators.expressions import col, stream
from operators.functions import Function, function
from operators.handshake_join import HandshakeJoin
from operators.index_join import IndexJoin
from operators.join import StreamJoin
from operators.orderings import EveryK, Ordering
from operators.pan_join import PanJoin
from operators.running_join import RunningJoin
from operators.scale_join import ScaleJoin
from operators.split_join import SplitJoin
from operators.spo_join import SPOJoin
from operators.windows import CountWindow, TimeWindow, UnboundedWindow

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
