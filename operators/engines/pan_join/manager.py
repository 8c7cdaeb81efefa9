"""PanJoin's manager: collects rows, keeps track of subwindows, and commands the workers (section III-A).

In: steps from the router. Out: commands to single workers, then the punctuation to all. If there is a mirror, it gets
each probe once, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from indexes import Interval, Keys, Live
from operators.engines.pan_join.commands import Create, Expire, Insert, Probe
from operators.engines.pan_join.streams import COMMANDS, PROBED
from operators.engines.shared.steps import Step, StepTask
from operators.protocol.element_rows import ElementRows
from operators.protocol.limits import Limits
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import outputs_of
from topology import Barrier, Bolt, Emit, Punctuation, Task, TaskContext

MOST_ROOM = (1 << 31) - 1
"""Rows of a subwindow that every structure can number."""

MOST_SUBWINDOWS = 16
"""With more live subwindows of a side per worker, new ones get twice the room."""


@dataclass(frozen=True)
class PanManager(Bolt):
    """Commands `workers` workers; the subwindows of each side have room for `subwindows[side]` rows.

    batch_rows: rows of one side that close a batch; None: each step is a batch.
    mirrored:   whether there is a mirror.
    """

    negated: tuple[bool, ...]
    workers: int
    subwindows: tuple[int, int]
    batch_rows: int | None = None
    mirrored: bool = False

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of((*COMMANDS, PROBED) if self.mirrored else COMMANDS)

    @property
    def note(self) -> str:
        left, right = self.subwindows
        rooms = f"{left:,}" if left == right else f"{left:,} | {right:,}"
        batch = "each step" if self.batch_rows is None else f"{self.batch_rows:,} rows"
        return f"subwindows of {rooms} rows, batch: {batch}"

    def build(self, context: TaskContext) -> Task:
        return PanManagerTask(self)


@dataclass(frozen=True)
class Link:
    """A subwindow in its chain: its worker, and the positions [first, end) that it has room for."""

    number: int
    worker: int
    first: int
    end: int


class SubwindowChain:
    """The subwindows of one side, oldest first, dealt to the workers in turn.

    The paper's manager learns from its workers whether the newest subwindow is full and whether the oldest is empty.
    Here rows have positions, and the router says which have expired. So the manager knows both beforehand, and need not
    wait for the answers to one batch before it emits the next.

    How many rows a time window will hold is not known at the start. When a side has more than MOST_SUBWINDOWS live
    subwindows per worker, new ones get twice the room. A subwindow always begins at a multiple of its room.

        room 4, 2 workers     rows 0..9        0: [0, 4) at 0    1: [4, 8) at 1    2: [8, 12) at 0, newest
                              4 and less dead  0 expires; 1 does when 7 is dead
    """

    def __init__(self, room: int, workers: int) -> None:
        self._room = room
        self._workers = workers
        self._links: deque[Link] = deque()
        self._next = 0
        self._end = 0
        self.created = 0

    def __len__(self) -> int:
        return len(self._links)

    def place(self, first: int, rows: int) -> Iterator[tuple[Link, int, int, bool]]:
        """Where new rows go: (subwindow, first position, position after the last, whether to create it)."""
        assert first == self._end, "rows come without gaps"
        end = first + rows
        while first < end:
            new = not self._links or self._links[-1].end <= first
            if new:
                self._create(first)
            newest = self._links[-1]
            stop = min(end, newest.end)
            yield newest, first, stop, new
            first = stop
        self._end = end

    def holders(self, first: int, end: int) -> list[int]:
        """The workers that hold rows at some of the positions [first, end)."""
        end = min(end, self._end)
        return sorted({link.worker for link in self._links if link.first < end and link.end > first})

    def expire(self, below: int) -> Iterator[Link]:
        """Remove the subwindows with no position from `below` on."""
        while self._links and self._links[0].end <= below:
            yield self._links.popleft()

    def _create(self, first: int) -> None:
        twice = 2 * self._room
        if len(self._links) > MOST_SUBWINDOWS * self._workers and first % twice == 0 and twice <= MOST_ROOM:
            self._room = twice
        assert first % self._room == 0, "the one before it is full"
        self._links.append(Link(self._next, self._next % self._workers, first, first + self._room))
        self._next += 1
        self.created += 1

    def check_invariants(self) -> None:
        links = list(self._links)
        for before, after in pairwise(links):
            # Subwindows follow each other without gaps, in turn at the workers.
            assert before.end == after.first
            assert after.worker == (before.worker + 1) % self._workers
        # Only the newest has room left.
        assert not links or links[-1].first < self._end <= links[-1].end


class PanManagerTask(StepTask):
    """Two buffers, one for each side, that are closed together.

    The paper closes each side's buffer alone, when its time or its number of rows is reached. Here a row is answered
    completely with its batch, so the batch must include the rows of the other side that came before it. The number of
    rows is `batch_rows`. The time is up when no more rows wait at the manager, at a barrier, or at the end. Neither
    changes a result: each probe row carries its live range.

    This does steps 1 to 3 of the paper, except for the sorting of step 2: the worker that stores rows sorts them, and
    each worker that probes sorts the bands, in parallel.

    No row comes late: the gate before the router puts all sources in one order, and late rows never reach the router.
    So workers need no side buffer for late rows (section III-G2).
    """

    def __init__(self, description: PanManager) -> None:
        super().__init__(description.negated)
        self._batch_rows = description.batch_rows
        self._mirrored = description.mirrored
        self._chains = tuple(SubwindowChain(room, description.workers) for room in description.subwindows)
        self._buffers: tuple[list[ElementRows], list[ElementRows]] = ([], [])
        self._last: Punctuation | None = None
        self._closing = Limits()
        self._batches = 0

    def on_step(self, step: Step) -> Iterable[Emit]:
        for side in (LEFT, RIGHT):
            rows = step.rows[side]
            if rows is not None and len(rows):
                self._buffers[side].append(rows)
        self._last = step.last
        self._closing = step.limits
        most = max(sum(map(len, buffer)) for buffer in self._buffers)
        if self._batch_rows is None or most >= self._batch_rows:
            return self._close()
        return ()

    def on_idle(self) -> Iterable[Emit]:
        return self._close()

    def on_barrier(self, barrier: Barrier) -> Iterable[Emit]:
        return self._close()

    def on_end(self) -> Iterable[Emit]:
        return self._close()

    def metrics(self) -> Mapping[str, float]:
        left, right = self._chains
        return {
            "left_subwindows": float(len(left)),
            "right_subwindows": float(len(right)),
            "created": float(left.created + right.created),
            "batches": float(self._batches),
        }

    def check_invariants(self) -> None:
        for chain in self._chains:
            chain.check_invariants()
        # Rows are held back together with the punctuation that follows them.
        assert self._last is not None or not any(self._buffers)

    def _close(self) -> Iterator[Emit]:
        if self._last is None:
            return
        last, self._last = self._last, None
        rows = [joined(buffer) if buffer else None for buffer in self._buffers]
        self._buffers = ([], [])
        self._batches += 1
        for side in (LEFT, RIGHT):
            own = rows[side]
            if own is not None:
                yield from self._store(side, own)
        for side in (LEFT, RIGHT):
            own = rows[side]
            if own is not None:
                yield from self._search(side, own)
        yield Emit(last)
        for side in (LEFT, RIGHT):
            for link in self._chains[side].expire(self._closing.live[side]):
                yield Emit(Expire(side, link.number).to_batch(), to=link.worker)

    def _store(self, side: int, rows: ElementRows) -> Iterator[Emit]:
        for link, first, end, new in self._chains[side].place(rows.first, len(rows)):
            if new:
                yield Emit(Create(side, link.number, link.first, link.end - link.first).to_batch(), to=link.worker)
            part = slice(first - rows.first, end - rows.first)
            keys = tuple(Keys(one.values[part], None if one.valid is None else one.valid[part]) for one in rows.keys)
            yield Emit(Insert(side, link.number, first, keys).to_batch(), to=link.worker)

    def _search(self, side: int, rows: ElementRows) -> Iterator[Emit]:
        first, _, _, end = rows.live.extent
        holders = self._chains[1 - side].holders(first, end)
        probe = Probe(side, rows)
        if holders:
            command = probe.to_batch()
            for worker in holders:
                yield Emit(command, to=worker)
        if self._mirrored:
            yield Emit(probe.to_batch(PROBED))


def joined(parts: Sequence[ElementRows]) -> ElementRows:
    """Consecutive rows as one."""
    if len(parts) == 1:
        return parts[0]
    keys, intervals = [], []
    for d in range(len(parts[0].keys)):
        keys.append(Keys.joined([part.keys[d] for part in parts]))
        # Until the other side's type is known nothing matches, and the bounds have an arbitrary type.
        bounds = [part.intervals[d] for part in parts]
        kind = bounds[-1].low.dtype
        low, high = (np.concatenate([each.astype(kind) for each in ends]) for ends in _ends(bounds))
        intervals.append(Interval(low, high, bounds[-1].negated))
    first, end = (np.concatenate(each) for each in zip(*((p.live.start, p.live.end) for p in parts), strict=True))
    seq = np.concatenate([part.seq for part in parts])
    return ElementRows(parts[0].first, seq, tuple(keys), tuple(intervals), Live(first, end))


def _ends(bounds: Sequence[Interval]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    return [one.low for one in bounds], [one.high for one in bounds]
