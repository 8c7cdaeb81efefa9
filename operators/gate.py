"""The gate: merges any number of physical sources into one total order.

The order is (event time, source name, offset), and then the stream's name should two streams use one source name. A row
may pass when no source that is still open can deliver an earlier one. So the merged sequence is a function of the rows
alone: not of when they arrive, nor of how they are cut into batches.

In: batches of each stream, each source in its own order; announcements and ends of sources.
Out: for each release one batch per stream, with the sequence number of each row in column `#seq` (and its time in
`#time` where the stream has no column for it), then a punctuation.

Rows that cannot pass yet wait here, on disk beyond a bound, because the source they wait for may need the very room
that they occupy. The gate releases when it has a full step of rows or when nothing more waits to be taken: so steps
grow with the backlog, and an idle stream is passed on at once.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topology import Batch, Bolt, Emit, End, Origin, Punctuation, Task, TaskContext, Watermark
from topology.event_time import Times, event_times
from topology.messages import Time
from topology.spill import SpillQueue

log = logging.getLogger("interlace")

SEQ = "#seq"
TIME = "#time"
"""The row's number in its source, sent on where no column holds the event time."""

DEFAULT_STEP_ROWS = 1 << 17


@dataclass(frozen=True)
class Gate(Bolt):
    """Merges the streams in `event_time`, a mapping of stream to its event-time column (None: the row's number)."""

    event_time: tuple[tuple[str, str | None], ...]
    step_rows: int = DEFAULT_STEP_ROWS

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return {stream: None for stream, _ in self.event_time}

    @property
    def note(self) -> str:
        return "ordered by event time, source, offset"

    def build(self, context: TaskContext) -> Task:
        return GateTask(dict(self.event_time), self.step_rows, context.spill_directory)


@dataclass
class _Head:
    """The rows of one batch that have not passed yet, with their times and when they came in."""

    rows: pa.RecordBatch
    times: Times
    born: float

    def split(self, count: int) -> tuple[_Head, _Head]:
        """The first `count` rows, and the others."""
        return (
            _Head(self.rows.slice(0, count), self.times[:count], self.born),
            _Head(self.rows.slice(count), self.times[count:], self.born),
        )


@dataclass
class _Source:
    """One physical source. The head is in memory; the batches behind it may be on disk."""

    stream: str
    name: str
    event_time: str | None
    queue: SpillQueue
    behind: deque[tuple[float, Time]] = field(default_factory=deque)  # when each queued batch came, and its first time
    head: _Head | None = None
    waiting: int = 0
    frontier: Time | None = None
    open: bool = True

    @property
    def key(self) -> tuple[str, str]:
        return (self.name, self.stream)

    def append(self, head: _Head) -> None:
        if self.head is None:
            self.head = head
        else:
            rows = head.rows
            if self.event_time is None:  # row numbers stay with the rows while they wait
                rows = rows.append_column(TIME, pa.array(head.times))
            self.queue.append(rows)
            self.behind.append((head.born, head.times[0].item()))
        self.waiting += len(head.times)
        self.frontier = head.times[-1].item()

    def take(self, border: _Border | None) -> list[_Head]:
        """Remove and return the rows up to and including the border (None: all)."""
        taken = []
        while self.head is not None:
            count = len(self.head.times) if border is None else border.count(self)
            if count:
                part, rest = self.head.split(count)
                taken.append(part)
                self.waiting -= count
                self.head = rest if len(rest.times) else self._next()
            if not count or (border is not None and border.cut_source is self):
                break
        return taken

    def passes_beyond_head(self, border: _Border) -> bool:
        """Whether batches behind the head have rows up to the border."""
        return bool(self.behind) and (self.behind[0][1], self.key) <= border.place

    def cut(self, rows: int) -> _Border:
        """The border after the first `rows` rows, or after the head if it is shorter."""
        assert self.head is not None
        count = min(rows, len(self.head.times))
        return _Border(self.head.times[count - 1].item(), self.key, self, count)

    def _next(self) -> _Head | None:
        if not len(self.queue):
            return None
        rows, (born, _) = self.queue.popleft(), self.behind.popleft()
        if self.event_time is None:
            times = rows.column(rows.num_columns - 1).to_numpy()
            return _Head(rows.select(rows.schema.names[:-1]), times, born)
        return _Head(rows, event_times(rows.column(self.event_time))[0], born)


@dataclass(frozen=True)
class _Border:
    """Rows up to (time, key) may pass; of `cut_source`, exactly the first `cut_count` of its head."""

    time: Time
    key: tuple[str, str]
    cut_source: _Source | None = None
    cut_count: int = 0

    @property
    def place(self) -> tuple[Time, tuple[str, str]]:
        return (self.time, self.key)

    def count(self, source: _Source) -> int:
        """How many rows of the source's head may pass."""
        assert source.head is not None
        if source is self.cut_source:
            return self.cut_count
        return int(np.searchsorted(source.head.times, self.time, side="right" if source.key <= self.key else "left"))


class GateTask(Task):
    """Holds what waits, per source, and the number of the next row in the total order."""

    def __init__(
        self, event_time: Mapping[str, str | None], step_rows: int, spill_directory: str | None = None
    ) -> None:
        self._event_time = event_time
        self._step_rows = step_rows
        self._spill_directory = spill_directory
        self._sources: dict[tuple[str, str], _Source] = {}
        self._announced: set[str] = set()
        self._positions = dict.fromkeys(event_time, 0)
        self._seq = 0
        self._fresh = 0
        self._passed: tuple[Time, tuple[str, str]] | None = None
        self._rejected = 0
        self._late = 0

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        source = self._source(origin.component, batch.source)
        rows, times = self._timed(batch, source)
        if self._passed is not None and len(times) and (times[0].item(), source.key) < self._passed:
            rows, times = self._without_late(rows, times, source)
        if not len(times):
            return
        source.append(_Head(rows, times, batch.born))
        self._fresh += len(times)
        if self._fresh >= self._step_rows:
            yield from self._release()

    def on_watermark(self, watermark: Watermark, origin: Origin) -> Iterable[Emit]:
        source = self._source(origin.component, watermark.source)
        if watermark.time is not None and (source.frontier is None or watermark.time > source.frontier):
            source.frontier = watermark.time
        return ()

    def on_source_end(self, end: End, origin: Origin) -> Iterable[Emit]:
        self._source(origin.component, end.source).open = False
        return ()

    def on_input_end(self, origin: Origin) -> Iterable[Emit]:
        self._announced.add(origin.component)
        for source in self._sources.values():
            if source.stream == origin.component:
                source.open = False
        return ()

    def on_idle(self) -> Iterable[Emit]:
        return self._release()

    def on_end(self) -> Iterable[Emit]:
        yield from self._release()
        for source in self._sources.values():
            source.queue.close()

    def metrics(self) -> Mapping[str, float]:
        sources = list(self._sources.values())
        return {
            "merged": float(self._seq),
            "rejected": float(self._rejected),
            "late": float(self._late),
            "waiting_rows": float(sum(source.waiting for source in sources)),
            "spilled_bytes": float(sum(source.queue.disk_bytes for source in sources)),
        }

    def check_invariants(self) -> None:
        for source in self._sources.values():
            if source.head is not None:
                # what waits is in order
                assert len(source.head.times) == source.head.rows.num_rows > 0
                assert not np.any(source.head.times[1:] < source.head.times[:-1])
                # nothing that waits belongs before what has passed
                assert self._passed is None or (source.head.times[0], source.key) >= self._passed
            # a source without a head has nothing queued behind it
            assert source.head is not None or not len(source.queue)
            assert len(source.behind) == len(source.queue)

    def _source(self, stream: str, name: str) -> _Source:
        self._announced.add(stream)
        key = (stream, name)
        if key not in self._sources:
            queue = SpillQueue(directory=self._spill_directory)
            self._sources[key] = _Source(stream, name, self._event_time[stream], queue)
        return self._sources[key]

    def _timed(self, batch: Batch, source: _Source) -> tuple[pa.RecordBatch, Times]:
        """The rows of a batch that have a time, and their times; the others are counted as rejected."""
        if source.event_time is None:
            return batch.rows, np.arange(batch.first, batch.end, dtype=np.int64)
        times, valid = event_times(batch.rows.column(source.event_time))
        if valid is None:
            return batch.rows, times
        self._rejected += int(len(valid) - valid.sum())
        return batch.rows.filter(pa.array(valid)), times[valid]

    def _without_late(self, rows: pa.RecordBatch, times: Times, source: _Source) -> tuple[pa.RecordBatch, Times]:
        """Cut off rows that belong before what has passed: their source was announced too late for them."""
        assert self._passed is not None
        time, key = self._passed
        late = int(np.searchsorted(times, time, side="left" if source.key >= key else "right"))
        self._late += late
        log.warning(
            "stream '%s': %d rows of source '%s' are late and left out: announce every source before the first rows "
            "are sent (launch(..., sources=...) or running.open(...))",
            source.stream,
            late,
            source.name,
        )
        return rows.slice(late), times[late:]

    def _release(self) -> Iterator[Emit]:
        """Send all that may pass, a step at a time."""
        self._fresh = 0
        while len(self._announced) == len(self._event_time):
            open_sources = [source for source in self._sources.values() if source.open]
            if any(source.frontier is None for source in open_sources):
                return
            # the earliest place at which an open source could still deliver
            borders = [_Border(source.frontier, source.key) for source in open_sources if source.frontier is not None]
            border = self._within_a_step(min(borders, key=lambda border: border.place, default=None))
            step = {key: source.take(border) for key, source in self._sources.items()}
            if not any(step.values()):
                return
            yield from self._merge(step)

    def _within_a_step(self, border: _Border | None) -> _Border | None:
        """Lower the border where more than a step's rows wait.

        The new border is the earliest place at which a source has given its share; it may lie between rows of equal
        time of that source, so a step is bounded whatever the data. The share starts as the whole step, for sources
        that take turns, and shrinks where they overlap.
        """
        waiting = [source for source in self._sources.values() if source.head is not None]
        if sum(source.waiting for source in waiting) <= self._step_rows:
            return border
        all_in_heads = border is not None and not any(source.passes_beyond_head(border) for source in waiting)
        if border is not None and all_in_heads and sum(map(border.count, waiting)) <= self._step_rows:
            return border
        share = self._step_rows
        while True:
            cut = min((source.cut(share) for source in waiting), key=lambda border: border.place)
            rows = sum(cut.count(source) for source in waiting)
            if rows <= self._step_rows or share == 1:
                break
            share = max(1, share * self._step_rows // rows)
        return cut if border is None or cut.place <= border.place else border

    def _merge(self, step: Mapping[tuple[str, str], list[_Head]]) -> Iterator[Emit]:
        parts = sorted(
            ((name, stream), stream, heads) for (stream, name), heads in step.items() if heads
        )
        times = np.concatenate([head.times for _, _, heads in parts for head in heads])
        counts = [sum(len(head.times) for head in heads) for _, _, heads in parts]
        rank = np.arange(len(times))
        if len(parts) > 1:
            order = np.argsort(times, kind="stable")  # sources are in the order of their names: ties keep it
            rank = np.empty(len(times), dtype=np.int64)
            rank[order] = np.arange(len(times))
        ranks = np.split(rank, np.cumsum(counts)[:-1])
        born = min(head.born for _, _, heads in parts for head in heads)
        for stream in self._event_time:
            mine = [index for index, part in enumerate(parts) if part[1] == stream]
            if mine:
                seq = np.concatenate([ranks[index] for index in mine])
                heads = [head for index in mine for head in parts[index][2]]
                rows = _concat([head.rows for head in heads])
                if self._event_time[stream] is None:
                    rows = rows.append_column(TIME, pa.array(np.concatenate([head.times for head in heads])))
                yield Emit(self._numbered(stream, rows, seq, len(mine) > 1, born))
        self._passed = max((heads[-1].times[-1].item(), key) for key, _, heads in parts)
        self._seq += len(times)
        yield Emit(Punctuation(self._seq - 1, born))

    def _numbered(
        self, stream: str, rows: pa.RecordBatch, seq: npt.NDArray[np.int64], shuffled: bool, born: float
    ) -> Batch:
        if shuffled:
            order = np.argsort(seq)
            rows, seq = rows.take(pa.array(order)), seq[order]
        first = self._positions[stream]
        self._positions[stream] += len(seq)
        return Batch(stream, rows.append_column(SEQ, pa.array(seq + self._seq)), first=first, born=born)


def _concat(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
