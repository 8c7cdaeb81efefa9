"""topology: the graph of components and how it runs.

In flows: rows from outside, as Arrow record batches, through an `Input` or a user's own `Spout`.
Out flows: rows that reach a `Sink`, read from the handle that `launch` returns.
May import: numpy, numba, pyarrow; ray only in files named for Ray. Knows nothing of joins, Spark or indexes.

Read in this order: messages, components, groupings, builder, graph, task_loop, inbox, input_guard, ingest, running,
local_runtime, flight_door, ray_runtime.
"""

from typing import TYPE_CHECKING, Any

from topology.builder import TopologyBuilder
from topology.components import (
    DEFAULT_STREAM,
    Bolt,
    Component,
    Emit,
    Input,
    MapBatches,
    Origin,
    Sink,
    Spout,
    SpoutTask,
    Task,
    TaskContext,
)
from topology.errors import (
    AuthenticationError,
    ConnectionLostError,
    CycleError,
    DuplicateComponentError,
    GroupingError,
    InputError,
    InterlaceError,
    OutOfOrderError,
    SchemaError,
    SourceEndedError,
    StaleStreamError,
    StoppedError,
    TaskError,
    TopologyError,
    UnknownComponentError,
    UnknownInputError,
    UnknownStreamError,
    UnpicklableError,
)
from topology.flight_client import FlightClient
from topology.graph import Topology
from topology.groupings import (
    All,
    Custom,
    Direct,
    Fields,
    Global,
    Grouping,
    LocalOrShuffle,
    PartialKey,
    Shuffle,
)
from topology.local_runtime import LocalRuntime
from topology.messages import Barrier, Batch, End, Idle, Punctuation, Watermark
from topology.metrics import Metrics
from topology.running import Endpoint, RunningTopology, Runtime

if TYPE_CHECKING:
    from topology.ray_runtime import RayRuntime

__all__ = [
    "DEFAULT_STREAM",
    "All",
    "AuthenticationError",
    "Barrier",
    "Batch",
    "Bolt",
    "Component",
    "ConnectionLostError",
    "Custom",
    "CycleError",
    "Direct",
    "DuplicateComponentError",
    "Emit",
    "End",
    "Endpoint",
    "Fields",
    "FlightClient",
    "Global",
    "Grouping",
    "GroupingError",
    "Idle",
    "Input",
    "InputError",
    "InterlaceError",
    "LocalOrShuffle",
    "LocalRuntime",
    "MapBatches",
    "Metrics",
    "Origin",
    "OutOfOrderError",
    "PartialKey",
    "Punctuation",
    "RayRuntime",
    "RunningTopology",
    "Runtime",
    "SchemaError",
    "Shuffle",
    "Sink",
    "SourceEndedError",
    "Spout",
    "SpoutTask",
    "StaleStreamError",
    "StoppedError",
    "Task",
    "TaskContext",
    "TaskError",
    "Topology",
    "TopologyBuilder",
    "TopologyError",
    "UnknownComponentError",
    "UnknownInputError",
    "UnknownStreamError",
    "UnpicklableError",
    "Watermark",
]


def __getattr__(name: str) -> Any:
    """Import what needs Ray only when it is asked for."""
    if name == "RayRuntime":
        from topology.ray_runtime import RayRuntime

        return RayRuntime
    raise AttributeError(f"module 'topology' has no attribute {name!r}")
