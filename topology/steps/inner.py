"""Drives a task inside a join that is a part of a topology with a state.

The gate of such a join takes the steps of the sequencer as all tasks do (`aligned.py`), so which rows it passes between
two marks is a function of the steps. What follows it inside the join has an order of its own, by the gate's sequence
numbers, and need not take its inputs in turn: its results are the same in any case, and so a large answer never has to
wait as a whole. Only the marks meet here. An input that has reached a mark waits until the others have, and then the
mark goes on. So the results of the rows that the gate passed before a mark leave the join before it.

    router    a1 |1 a2 ...           goes on behind the mark as far as there is room
    element   m1    |1 m2 ...
    collector r1 |1 r2 ...           `Leaving` holds r1 together until the mark

These tasks save no snapshots. The gate's has the rows that are live, with those that wait at it, and fills the windows
with them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from topology.graph.components import DEFAULT_STREAM, Emit, Origin, Task
from topology.graph.messages import Barrier, End, Message, Restore, StepEnd
from topology.journal.snapshots import Snapshot
from topology.steps.leaving import Leaving
from topology.tasks.metrics import TaskCounters
from topology.tasks.task_loop import TaskCore


class InnerCore(TaskCore):
    """Calls one task inside a join for each message, and lets marks meet.

    leaving: what its actions pass through, if it is the last one in the join; None: it is not.
    keep:    called at each barrier with the snapshot of `leaving`; load: returns it.
    """

    steps = StepEnd

    def __init__(
        self,
        task: Task,
        origins: Sequence[Origin],
        counters: TaskCounters,
        leaving: Leaving | None,
        keep: Callable[[Barrier, Snapshot], None],
        load: Callable[[Barrier], Snapshot],
    ) -> None:
        super().__init__(task, origins, counters)
        self._leaving = leaving
        self._keep = keep
        self._load = load
        self._at_mark: set[int] = set()
        self._over = False

    @property
    def finished(self) -> bool:
        return self._over

    def blocked(self, index: int) -> bool:
        return index in self._at_mark or self._task.blocked(self._origins[index])

    def idle(self) -> Iterator[Emit]:
        return iter(()) if self._has_ended else self._left(super().idle())

    def handle(self, index: int, message: Message) -> Iterator[Emit]:
        if isinstance(message, StepEnd | Barrier | Restore) or message == End():
            self._note(index, message)
            return self._marked(index, message)
        if isinstance(message, End) and not message.source:
            self._note(index, message)
            return self._left(self._input_ended(index))
        return self._left(super().handle(index, message))

    @property
    def _has_ended(self) -> bool:
        """Whether no rows will come: only marks do until the topology ends."""
        return len(self._ended) == len(self._origins)

    def _left(self, actions: Iterator[Emit]) -> Iterator[Emit]:
        return actions if self._leaving is None else self._leaving.passed(actions)

    def _input_ended(self, index: int) -> Iterator[Emit]:
        if index in self._ended:
            return
        self._ended.add(index)
        yield from self._counted(self._task.on_input_end(self._origins[index]))
        if self._has_ended:
            yield from self._counted(self._task.on_end())
            yield Emit(End(DEFAULT_STREAM))

    def _marked(self, index: int, mark: Message) -> Iterator[Emit]:
        """One input has reached a mark; if it is the last one, the mark takes effect and goes on."""
        self._at_mark.add(index)
        if isinstance(mark, End):
            yield from self._left(self._input_ended(index))
        if len(self._at_mark) < len(self._origins):
            return
        if not self._has_ended:
            if isinstance(mark, StepEnd):
                yield from self._left(self._counted(self._task.on_idle()))
            elif isinstance(mark, Barrier):
                yield from self._left(self._counted(self._task.on_barrier(mark)))
        self._over = isinstance(mark, End)
        if self._leaving is not None:
            yield from self._leaving.rest()
            self._leaving.reach(mark)
            if isinstance(mark, Barrier):
                self._keep(mark, Snapshot(b"", self._leaving.state()))
            elif isinstance(mark, Restore):
                self._leaving.resume(self._load(mark.barrier).driver)
        self._at_mark.clear()
        yield Emit(mark)
