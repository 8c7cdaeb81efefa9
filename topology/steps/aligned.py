"""Drives a task behind the sequencer, so that what it does is a function of the steps.

The messages of each input come in stretches, and each stretch ends with a *mark*: the end of a step, a barrier, the
place where a new life begins, the end of everything. All inputs have the same marks in the same order, as all marks
come from the sequencer. The task takes one stretch of its first input, then one of the second, and so on; then the mark
takes effect, and goes on downstream once.

    input A   a1 a2 |1        a3 |2 |barrier
    input B   b1    |1  b2 b3    |2 |barrier
    the task  a1 a2 b1 |1 a3 b2 b3 |2 |barrier

So rows meet in the same order, whichever comes first. `Task.on_idle` is called at the end of each step, instead of
when nothing waits, and then `Task.on_tick`, if the step has a tick that the task is due for. The task sees its inputs
as if there were no sequencer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from topology.graph.components import DEFAULT_STREAM, Emit, Origin, Task
from topology.graph.errors import TopologyError
from topology.graph.graph import TaskName
from topology.graph.messages import (
    Barrier,
    Batch,
    End,
    Idle,
    Message,
    Punctuation,
    Restore,
    Resume,
    StepEnd,
    Watermark,
)
from topology.journal.snapshots import Snapshot, Snapshots
from topology.steps.sequencer import as_sent
from topology.steps.ticks import TicksDue
from topology.tasks.metrics import TaskCounters
from topology.tasks.task_loop import Outputs, TaskCore


class AlignedCore(TaskCore):
    """Calls one task for each message, stretch by stretch.

    feeders:   the task's inputs, as messages come.
    given:     its inputs, as its author knows them, by the task that each comes from.
    sequencer: the component that stands for the inputs of the topology.
    outputs:   where it sends; None for a sink.
    keep:      called with the task's snapshot at each barrier; None: it has none.
    load:      returns the snapshot of a barrier.
    ticks:     which ticks the task is due for; None: it asks for none.
    decides:   it is a join's gate, and punctuates steps of its own.
    """

    steps = StepEnd

    def __init__(
        self,
        task: Task,
        feeders: Sequence[TaskName],
        counters: TaskCounters,
        given: Mapping[TaskName, Origin],
        sequencer: str,
        outputs: Outputs | None,
        keep: Callable[[Barrier, Snapshot], None] | None,
        load: Callable[[Barrier], Snapshot],
        ticks: TicksDue | None = None,
        decides: bool = False,
    ) -> None:
        super().__init__(task, tuple(given.values()), counters)
        counters.edge_rows, counters.edge_bytes = [0] * len(feeders), [0] * len(feeders)
        self._feeders = feeders
        self._given = given
        self._sequencer = sequencer
        self._outputs = outputs
        self._keep = keep
        self._load = load
        self._ticks = ticks
        self._decides = decides
        self._turn = 0
        self._has_ended = False
        self._over = False

    @property
    def finished(self) -> bool:
        return self._over

    def blocked(self, index: int) -> bool:
        return index != self._turn

    def idle(self) -> Iterator[Emit]:
        return iter(())

    def handle(self, index: int, message: Message) -> Iterator[Emit]:
        self._note(index, message)
        feeder = self._feeders[index]
        if _is_mark(message):
            return self._checked(self._marked(feeder, message))
        assert isinstance(message, Batch | Watermark | Idle | End)
        if feeder[0] != self._sequencer:
            return self._checked(self._delivered(message, self._given[feeder], index))
        origin = self._given.get((message.stream, 0))
        if origin is None:  # it is about an input that this task does not read
            return iter(())
        return self._checked(self._delivered(as_sent(message), origin, index))

    def _delivered(self, message: Message, origin: Origin, index: int) -> Iterator[Emit]:
        """The actions of the task for a message, and for the event time that it brings."""
        if isinstance(message, End) and not message.source:
            if origin.index in self._ended:
                return iter(())
            self._ended.add(origin.index)
            actions = self._task.on_input_end(origin)
        else:
            actions = self._call(message, origin, index)
        if self._merged is not None:
            return self._with_time(self._merged, actions, origin.index, message)
        return self._counted(actions)

    def _marked(self, feeder: TaskName, mark: Message) -> Iterator[Emit]:
        """End the stretch of one input; if it is the last input, the mark takes effect."""
        self._turn += 1
        if isinstance(mark, End) and feeder[0] != self._sequencer:
            origin = self._given[feeder]
            yield from self._delivered(mark, origin, origin.index)
        if self._turn < len(self._feeders):
            return
        self._turn = 0
        match mark:
            case StepEnd(clock=clock):
                yield from self._end_step(clock)
            case Barrier():
                yield from self._counted(self._task.on_barrier(mark))
                self._take_snapshot(mark)
            case Restore(barrier):
                self._restore(barrier)
            case End():
                yield from self._end()
                self._over = True
        yield _Mark(mark)

    def _end_step(self, clock: float | None) -> Iterator[Emit]:
        if self._has_ended:
            return
        yield from self._counted(self._task.on_idle())
        if clock is not None and self._ticks is not None and self._ticks.is_due(clock):
            yield from self._counted(self._task.on_tick(clock))
        if len(self._ended) == len(self._origins):
            yield from self._end()

    def _end(self) -> Iterator[Emit]:
        """Let the task end; those after it learn that nothing but marks will come from here."""
        if not self._has_ended:
            self._has_ended = True
            yield from self._counted(self._task.on_end())
            yield Emit(End(DEFAULT_STREAM))

    def _take_snapshot(self, barrier: Barrier) -> None:
        if self._keep is not None:
            groupings = None if self._outputs is None else self._outputs.state()
            merged = None if self._merged is None else self._merged.state()
            ticks = None if self._ticks is None else self._ticks.state()
            ended = [self._has_ended, *sorted(self._ended)]
            self._keep(barrier, Snapshot(self._task.snapshot(), [groupings, merged, ticks, ended]))

    def _restore(self, barrier: Barrier) -> None:
        if self._keep is not None:
            snapshot = self._load(barrier)
            groupings, merged, ticks, *ended = snapshot.driver
            if ended:
                self._has_ended = ended[0][0]
                self._ended.update(ended[0][1:])
            self._task.restore(snapshot.task)
            if self._outputs is not None:
                self._outputs.resume(groupings)
            if self._merged is not None:
                self._merged.resume(merged)
            if self._ticks is not None:
                self._ticks.resume(ticks)

    def _checked(self, actions: Iterable[Emit]) -> Iterator[Emit]:
        """Let only this driver emit marks."""
        for emit in actions:
            message = emit.message
            if isinstance(emit, _Mark):
                yield Emit(message)
            elif _is_mark(message) or (isinstance(message, Punctuation) and not self._decides):
                raise TopologyError(
                    f"a task emits {type(message).__name__}, which the topology emits itself where it keeps a "
                    f"state: emit rows, and hold them back until on_idle() or on_end() if need be"
                )
            else:
                yield emit


class _Mark(Emit):
    """A mark that the driver emits."""


def _is_mark(message: Message) -> bool:
    return isinstance(message, StepEnd | Barrier | Resume | Restore) or message == End()


def send_and_keep(task: TaskName, snapshots: Snapshots, outputs: Outputs, emit: Emit) -> None:
    """Send, and keep with each snapshot what the groupings of the sequencer go on from."""
    match emit.message:
        case Barrier():
            snapshots.save(task, emit.message, Snapshot(b"", outputs.state()))
        case Restore(barrier):
            outputs.resume(snapshots.load(task, barrier).driver)
    outputs.send(emit)
