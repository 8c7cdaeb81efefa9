"""Components, described apart from their state.

A component is a frozen, picklable description. `build` makes a task, the stateful part, once per parallel instance.
A task is pure: messages in, actions out. It never touches a clock, a socket, a thread or Ray. So the same task runs
under every driver, and a test can drive it by calling its methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import pyarrow as pa

from topology.graph.errors import NoSnapshotError, TopologyError
from topology.graph.messages import Barrier, Batch, End, Idle, Message, Punctuation, Time, Watermark

DEFAULT_STREAM = "default"


Facts: TypeAlias = "Mapping[str, Any]"
"""A few facts that JSON can express: no NaN, no infinity, names as keys."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a message came from: a component, its task, and the index of this input in the receiving task.

    lag: how far behind the greatest time in its batches each source's watermark is; None: batches promise nothing.
    """

    component: str
    task: int
    index: int
    lag: Time | None = None


@dataclass(frozen=True, slots=True)
class TaskContext:
    """A task's place in the topology: its component, its number among that component's tasks, and its inputs."""

    component: str
    task: int = 0
    parallelism: int = 1
    origins: tuple[Origin, ...] = ()
    spill_directory: str | None = None


@dataclass(frozen=True, slots=True)
class Emit:
    """An action: send a message downstream.

    A batch goes along the edges that subscribe to its stream, and each edge's grouping chooses the tasks. `to` names
    the task for edges with direct grouping. Any other message goes to every task downstream.
    """

    message: Message
    to: int | None = None


class Task(ABC):
    """The stateful part of a component. The driver calls one method at a time."""

    merges_watermarks: ClassVar[bool] = True
    """Whether the driver merges the watermarks of all inputs, calls `on_event_time` when the result rises, and sends it
    on. If not, the task learns of every watermark by `on_watermark` only, and emits its own, if any."""

    @abstractmethod
    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        """Handle rows; called in the order in which each origin sent them."""

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        """Called when `origin` has sent everything up to `punctuation.seq`; does nothing by default."""
        return ()

    def on_watermark(self, watermark: Watermark, origin: Origin) -> Iterable[Emit]:
        """Called when `origin` promises that no earlier event time follows; does nothing by default."""
        return ()

    def on_event_time(self, time: Time) -> Iterable[Emit]:
        """Called when no input will deliver a row earlier than `time`; does nothing by default.

        It comes after `on_watermark`, `on_batch`, ... of the message that made time rise. Afterwards the driver sends
        a watermark of `time` downstream, so rows that end with this time are emitted here.
        """
        return ()

    def on_tick(self, seconds: float) -> Iterable[Emit]:
        """Called at the start and then about every `Component.tick_seconds`, with the wall-clock time.

        Does nothing by default. Rows and ticks have no order of their own: results that depend on ticks depend on
        timing.
        """
        return ()

    def on_source_idle(self, idle: Idle, origin: Origin) -> Iterable[Emit]:
        """Called when one physical source is silent, until its next batch; does nothing by default."""
        return ()

    def on_source_end(self, end: End, origin: Origin) -> Iterable[Emit]:
        """Called when one physical source has ended; does nothing by default."""
        return ()

    def on_input_end(self, origin: Origin) -> Iterable[Emit]:
        """Called when nothing more will come from `origin`; does nothing by default."""
        return ()

    def on_barrier(self, barrier: Barrier) -> Iterable[Emit]:
        """Called when every input has reached `barrier`; the driver forwards the barrier afterwards."""
        return ()

    def on_idle(self) -> Iterable[Emit]:
        """Called when no message waits: the moment to emit rows that were held back to make larger batches."""
        return ()

    def on_end(self) -> Iterable[Emit]:
        """Called once, when every input has ended; the driver emits `End` afterwards."""
        return ()

    def blocked(self, origin: Origin) -> bool:
        """Whether messages of `origin` must wait for now; its sender then feels back-pressure."""
        return False

    def snapshot(self) -> bytes:
        """Return all of the state as bytes, from which `restore` makes it again, perhaps in a newer program.

        Called between two messages, at a barrier: the state is that after all rows before it. Only where the component
        says `snapshots = True`. Do not change anything here, and leave nothing out, such as rows that are held back.
        Avoid pickle: a newer program may not be able to read it.
        """
        raise NoSnapshotError(f"{type(self).__name__} has no snapshot(): implement it, or say snapshots = False")

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot; called once, in a new task of the same component and number, before any message."""
        raise NoSnapshotError(f"{type(self).__name__} has no restore(): implement it, or say snapshots = False")

    def metrics(self) -> Mapping[str, float]:
        """Return this task's own counters by name; called at any time."""
        return {}

    def details(self) -> Facts:
        """Return what a person may want to know beside the counters; called at any time, seldom, by other threads."""
        return {}

    def check_invariants(self) -> None:
        """Assert the invariants that hold between two calls; tests call it after every call."""
        return


@dataclass(frozen=True, slots=True)
class Decision:
    """What a deciding task chose for one step; recorded before the step leaves.

    seq:     the last sequence number of the step.
    choice:  what `DecidingTask.repeat` needs to emit the same step again.
    reached: where the task stands after it, for `Component.start_for`.
    """

    seq: int
    choice: Facts
    reached: Facts


@dataclass(frozen=True, slots=True)
class TaskState:
    """The state of a deciding task: a few facts, and the rows that it holds."""

    facts: Facts = field(default_factory=dict)
    rows: tuple[pa.RecordBatch, ...] = ()


class DecidingTask(Task):
    """A task whose output depends on when its input comes, and not on the input alone: the gate of a join.

    Everything after such a task is a function of what it emits. So with a store the driver records its decisions before
    its output leaves, and has them repeated after a failure: the same steps in the same order, from the same rows.
    Between two calls the driver may ask for the state, from which another task of the component goes on.
    """

    merges_watermarks = False

    @abstractmethod
    def take(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        """As `on_batch`, but decide nothing: emit only what follows from the rows and the decisions before."""

    @property
    @abstractmethod
    def decision(self) -> Decision:
        """The decision that the step before the last punctuation follows from."""

    @property
    def step_rows(self) -> Mapping[tuple[str, str], tuple[int | None, int]]:
        """Which rows the step before the last punctuation holds: for error messages.

        By stream and source, the offsets [first, end) that they are among; from None: only the end is known.
        """
        return {}

    @abstractmethod
    def repeat(self, choice: Facts) -> Iterable[Emit]:
        """Emit the step that a decision was made for, by the rows that were here then."""

    @abstractmethod
    def state(self) -> TaskState:
        """Return all that the task needs to go on."""

    @abstractmethod
    def resume(self, state: TaskState) -> Iterable[Emit]:
        """Go on from a state, in a new task; emit what the tasks downstream must know before the next step."""

    @property
    @abstractmethod
    def state_bytes(self) -> int:
        """About the size of the state."""


class Component(ABC):
    """A description: frozen, picklable, comparable. The plan is printed from it, without building any task."""

    kind: str = "bolt"

    beside: ClassVar[Literal["inputs", "sinks"] | None] = None
    """Where its tasks run in the default placement: in the process of the inputs, in that of the sinks, or (None) each
    in a process of its own. Set it on components that cost little and exchange many messages with their neighbours."""

    side_streams: ClassVar[frozenset[str]] = frozenset()
    """Streams whose consumers do not hold this component back: it goes on when their queues are full.

    Needed where a consumer downstream waits for this component and for one that a side stream feeds: if the side stream
    could hold this one back, each would wait for the other. Only for streams that cannot run far ahead, because the
    other outputs are bounded: the queues of a side stream are not."""

    unordered_streams: frozenset[str] = frozenset()
    """Streams whose rows come in no order of event time. Watermarks alone say how far they have come."""

    decides: ClassVar[bool] = False
    """Whether its tasks are `DecidingTask`s."""

    rescales: ClassVar[bool] = False
    """Whether another number of tasks, which begin anew from the same input, leads to the same results. A running
    topology can then be rebalanced. Not so if another component knows the number of tasks."""

    snapshots: bool = False
    """Whether its tasks have `snapshot` and `restore`. Where one has not, a topology with a state keeps all rows."""

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        """The streams it emits, each with its schema, or None where the schema depends on the data."""
        return {DEFAULT_STREAM: None}

    @property
    def note(self) -> str:
        """One line for the plan about this component's settings."""
        return ""

    @property
    def tick_seconds(self) -> float | None:
        """The seconds between two calls of `Task.on_tick`; None: it is never called."""
        return None

    @property
    def watermark_lag(self) -> Time | None:
        """How far a source's watermark is behind the greatest event time it has sent; None: batches promise nothing."""
        return None

    @abstractmethod
    def build(self, context: TaskContext) -> Task | SpoutTask:
        """Make the stateful part for one task."""

    def start_for(self, starts: Sequence[Facts], acknowledged: Facts) -> int:
        """Choose where a log may begin, so that it holds all rows that results after `acknowledged` depend on.

        Only where the component decides. Both are what decisions have `reached`; `starts` are the places where a log
        can begin, oldest first. Return the number of the latest that suffices. By default nothing is forgotten.
        """
        return 0

    def adopt(self, reached: Facts, schemas: Mapping[str, pa.Schema]) -> Facts:
        """Describe a place that another query has `reached` as decisions of this component do.

        Only where the component decides, and by rows of these schemas. Raises an `InputError` if they do not fit.
        """
        return reached

    def durable(self) -> Component:
        """The component as it runs in a topology that keeps a state and has a sequencer; by default as it is.

        Raises a `TopologyError` if it could not do the same again after a failure.
        """
        return self

    def prepare(self) -> None:  # noqa: B027  most have nothing to prepare
        """Import what its tasks need with their first rows; does nothing by default.

        On a cluster, a worker calls this in a thread of its own while other workers start. It may be called never, or
        more than once.
        """


class Bolt(Component):
    """A component that other components feed. Subclasses are frozen dataclasses that implement `build`."""

    @abstractmethod
    def build(self, context: TaskContext) -> Task:
        """Make the stateful part for one task."""


class SpoutTask(ABC):
    """The stateful part of a spout."""

    @abstractmethod
    def batches(self) -> Iterator[Emit]:
        """Yield the rows to emit; the spout ends when the iterator does."""

    def metrics(self) -> Mapping[str, float]:
        """Return this task's own counters by name."""
        return {}

    def details(self) -> Facts:
        """As `Task.details`."""
        return {}


class Spout(Component):
    """A component that produces its own rows (a file, a generator). For rows sent from outside see `Input`."""

    kind = "spout"

    @abstractmethod
    def build(self, context: TaskContext) -> SpoutTask:
        """Make the stateful part for one task."""


@dataclass(frozen=True)
class Input(Component):
    """A component that takes rows from outside, through `running.send(...)` or over Flight.

    schema:     the columns and types; None: those of the first batch.
    event_time: the column with the event time, non-decreasing within each source; None: the row number is the time.
    check:      called with a schema before it is accepted; raises `SchemaError` to refuse it.
    disordered: event time may go backwards within a source, because a component downstream puts rows in order.
    idle_after: seconds of silence after which a source, or a stream without one, counts as idle; None: never.
    out_of_order: how far event time may go backwards within a source, in the unit of its column; the watermark of a
                source stays this far behind its greatest event time. None: not at all.
    takes_bounds: a source may declare how far its event time goes backwards, because a component downstream puts the
                rows of each source in order by its own bound.
    """

    schema: pa.Schema | None = None
    event_time: str | None = None
    check: Callable[[pa.Schema], None] | None = None
    disordered: bool = False
    idle_after: float | None = None
    out_of_order: Time | None = None
    takes_bounds: bool = False
    kind: str = field(default="input", init=False, repr=False)
    beside = "inputs"
    snapshots = True

    def __post_init__(self) -> None:
        if self.out_of_order is not None:
            if self.event_time is None or not self.out_of_order >= 0:
                raise TopologyError(
                    f"Input(out_of_order={self.out_of_order!r}) needs a number of 0 or more, and event_time= with the "
                    f"name of a column"
                )
            object.__setattr__(self, "disordered", True)

    @property
    def watermark_lag(self) -> Time | None:
        """How far a source's watermark is behind the greatest event time it has sent; None: it has no watermark."""
        if self.out_of_order is not None:
            return self.out_of_order
        return None if self.event_time is None or self.disordered else 0

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return {DEFAULT_STREAM: self.schema}

    @property
    def note(self) -> str:
        notes = [f"event time: {self.event_time}"] if self.event_time else []
        if self.out_of_order is not None:
            notes.append(f"out of order by up to {self.out_of_order}")
        if self.idle_after is not None:
            notes.append(f"idle after {self.idle_after:g} s")
        return ", ".join(notes)

    def build(self, context: TaskContext) -> Task:
        return PassOn()


@dataclass(frozen=True)
class FetchedInput(Input):
    """Takes the place of a spout where a state is kept, so that its rows enter the journal; clients cannot send to it.

    source:  the `Source` that the rows come from.
    readers: the threads that share its partitions.
    """

    source: object = None
    readers: int = 1

    @property
    def note(self) -> str:
        return ", ".join(filter(None, [f"fetches from {type(self.source).__name__}", super().note]))


@dataclass(frozen=True)
class Sink(Component):
    """A component whose rows the handle's `results()` reads; rows wait for the reader in a bounded queue.

    aside: reading it is optional. Its rows never slow the topology: beyond a bound they are spilled to disk. And
           `results()` reads it only if it is named.
    """

    aside: bool = False
    kind: str = field(default="sink", init=False, repr=False)
    beside = "sinks"
    snapshots = True

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return {}

    @property
    def note(self) -> str:
        return "optional to read" if self.aside else ""

    def build(self, context: TaskContext) -> Task:
        return PassOn()


class PassOn(Task):
    """Forward every message unchanged, watermarks of single sources too."""

    merges_watermarks = False

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        yield Emit(batch)

    def on_watermark(self, watermark: Watermark, origin: Origin) -> Iterable[Emit]:
        yield Emit(watermark)

    def on_source_idle(self, idle: Idle, origin: Origin) -> Iterable[Emit]:
        yield Emit(idle)

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        yield Emit(punctuation)

    def on_source_end(self, end: End, origin: Origin) -> Iterable[Emit]:
        yield Emit(end)

    def snapshot(self) -> bytes:
        return b""

    def restore(self, snapshot: bytes) -> None:
        """Do nothing: there is no state."""


@dataclass(frozen=True)
class MapBatches(Bolt):
    """A stateless bolt that applies a function to each record batch; where it returns None, nothing is emitted."""

    function: Callable[[pa.RecordBatch], pa.RecordBatch | None]
    schema: pa.Schema | None = None
    rescales = True
    snapshots = True

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return {DEFAULT_STREAM: self.schema}

    @property
    def note(self) -> str:
        return getattr(self.function, "__name__", "")

    def build(self, context: TaskContext) -> Task:
        return _MapTask(self.function)


class _MapTask(Task):
    """Its rows no longer belong to single sources, so it passes on only what is said of all of them."""

    def __init__(self, function: Callable[[pa.RecordBatch], pa.RecordBatch | None]) -> None:
        self._function = function
        self._sent = 0

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        rows = self._function(batch.rows)
        if rows is not None and rows.num_rows:
            yield Emit(Batch(DEFAULT_STREAM, rows, first=self._sent, born=batch.born))
            self._sent += rows.num_rows

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        yield Emit(punctuation)

    def snapshot(self) -> bytes:
        return str(self._sent).encode()

    def restore(self, snapshot: bytes) -> None:
        self._sent = int(snapshot)
