"""Drives a deciding task with a journal: what it decides is recorded before it leaves, and repeated after a failure."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from topology.durable.group_commit import Ticket
from topology.graph.components import DEFAULT_STREAM, DecidingTask, Emit, Origin
from topology.graph.errors import InterlaceError
from topology.graph.messages import Batch, Message, Punctuation, Restore, Resume, Watermark
from topology.journal.events import Decided
from topology.journal.journal import Journal
from topology.journal.replay import Chose, Heard, Replay, Took
from topology.journal.snapshot_rounds import SnapshotRounds
from topology.journal.step_rows import StepRows
from topology.tasks.metrics import TaskCounters
from topology.tasks.task_loop import TaskCore

STEPS_WAITING = 2
"""Steps of one task that may wait until they are durable."""

UNRECORDED_BYTES = 4 * 1024 * 1024
"""When a task has taken so much without deciding anything, that is recorded, too: a successor holds it in memory."""


class RecordedSteps:
    """Between a deciding task and its consumers: a step goes on when its decision is durable.

    send:      sends an action downstream.
    sent:      called when some have been sent by the thread of the journal.
    on_lost:   called with the reason if a decision will never be durable.
    rows:      those of its last steps.
    rounds:    of snapshots, where a new life can start only with these; None: it can start at any step.
    """

    def __init__(
        self,
        task: DecidingTask,
        journal: Journal,
        send: Callable[[Emit], None],
        sent: Callable[[], None],
        on_lost: Callable[[InterlaceError], None],
        rounds: SnapshotRounds | None = None,
    ) -> None:
        self._rounds = rounds
        self._task = task
        self._journal = journal
        self._send = send
        self._sent = sent
        self._on_lost = on_lost
        self._open: list[Emit] = []
        self._seen: dict[str, dict[str, int]] = {}
        self._unrecorded = 0
        self._waiting = 0
        self._lock = threading.Lock()
        self.repeating = False
        self.rows = StepRows()

    def has_room(self, downstream: Callable[[], bool]) -> bool:
        """Whether the task may go on: few of its steps wait, and there is room downstream. A step is never cut."""
        return bool(self._open) or (self._waiting < STEPS_WAITING and downstream())

    def note(self, stream: str, message: Message) -> None:
        """Note what the task takes from an input."""
        if isinstance(message, Batch):
            self._seen.setdefault(stream, {})[message.source] = message.end
            self._unrecorded += message.nbytes
        elif isinstance(message, Watermark) and message.source:
            self._seen.setdefault(stream, {}).setdefault(message.source, 0)

    def send(self, emit: Emit) -> None:
        """Take an action of the task."""
        if isinstance(emit.message, Punctuation):
            self.rows.note(emit.message.seq, self._task.step_rows)
        if self.repeating:
            self._send(emit)
            return
        self._open.append(emit)
        if isinstance(emit.message, Punctuation):
            self._record(decides=True)
            if self._rounds is None:
                if self._journal.is_start_due(self._task.state_bytes):
                    self._journal.start_segment(self._task.state())
            elif self._rounds.is_due:
                self._open.append(Emit(self._rounds.begin(emit.message.seq, self._task.state())))

    def end_answer(self) -> None:
        """Record what the task has emitted beside its steps, and a lot that it has taken."""
        if self._open or self._unrecorded > UNRECORDED_BYTES:
            self._record(decides=False)

    def _record(self, decides: bool) -> None:
        emits, self._open = self._open, []
        seen, self._seen = self._seen, {}
        self._unrecorded = 0
        with self._lock:
            self._waiting += 1
        self._journal.record(
            Decided(seen, self._task.decision if decides else None), then=partial(self._release, emits)
        )

    def _release(self, emits: list[Emit], ticket: Ticket) -> None:
        if ticket.error is not None:
            self._on_lost(ticket.error)
            return
        try:
            for emit in emits:
                self._send(emit)
        except InterlaceError as error:  # the topology is ending; what is recorded still becomes durable
            self._on_lost(error)
            return
        with self._lock:
            self._waiting -= 1
        self._sent()


class RecordingCore(TaskCore):
    """Calls a deciding task, and has everything recorded; first it repeats what was recorded before."""

    def __init__(
        self,
        task: DecidingTask,
        origins: Sequence[Origin],
        counters: TaskCounters,
        steps: RecordedSteps,
        repeated: Iterator[Emit],
    ) -> None:
        super().__init__(task, origins, counters)
        self._steps = steps
        self._repeated: Iterator[Emit] | None = repeated
        self._steps.repeating = True

    def handle(self, index: int, message: Message) -> Iterator[Emit]:
        self._steps.note(self._origins[index].component, message)
        return self._to_its_end(super().handle(index, message))

    def idle(self) -> Iterator[Emit]:
        repeated, self._repeated = self._repeated, None
        if repeated is not None:  # every task is idle before its first message
            return self._repeat(repeated)
        return self._to_its_end(super().idle())

    def tick(self, seconds: float) -> Iterator[Emit]:
        return self._to_its_end(super().tick(seconds))

    def _to_its_end(self, answer: Iterator[Emit]) -> Iterator[Emit]:
        yield from answer
        self._steps.end_answer()

    def _repeat(self, repeated: Iterator[Emit]) -> Iterator[Emit]:
        yield from repeated
        self._steps.repeating = False


def repeat(
    task: DecidingTask, origins: Sequence[Origin], resumes: Iterable[Resume], replay: Replay | None, journal: Journal
) -> Iterator[Emit]:
    """Do again what the task did, in a new one; then the journal is free to forget what it did before that.

    The sinks learn first where they stood. Without a replay that is all.
    """
    by_stream = {origin.component: origin for origin in origins}
    for resume in resumes:
        yield Emit(resume)
    if replay is None:
        return
    if replay.snapshot is not None:
        yield Emit(Restore(replay.snapshot))
    if replay.state is not None:
        yield from task.resume(replay.state)
    for done in replay.steps():
        match done:
            case Heard(stream, source, bound):
                yield from task.on_watermark(Watermark(None, DEFAULT_STREAM, source, bound), by_stream[stream])
            case Took(stream, batch):
                yield from task.take(batch, by_stream[stream])
            case Chose(choice):
                yield from task.repeat(choice)
    journal.begin_trimming()
    replay.finished.set()
