"""ScaleGate: merges any number of sources into one order, and hands it to any number of readers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.merged_runs import RunMerger
from operators.waiting_source import Border, Part, SourceName, WaitingSource
from topology.event_time import Times
from topology.messages import Time
from topology.spill import SpillQueue

Int64 = npt.NDArray[np.int64]

STEP_ROWS = 1 << 17
"""Rows of a step unless said otherwise: enough to make the cost per step vanish, and they fit in cache."""


@dataclass(frozen=True)
class StreamRows:
    """Rows of one stream in order, and their numbers in the order of all streams."""

    rows: pa.RecordBatch
    seq: Int64


@dataclass(frozen=True)
class Ready:
    """Consecutive ready rows, numbers [first, end), by stream; `born` is when the oldest of them came in."""

    first: int
    end: int
    streams: Mapping[str, StreamRows]
    born: float


class ScaleGate:
    """A merge of sources that sends what is ready, in one order, to readers that each go at their own pace.

    Paper: "ScaleJoin: a Deterministic, Disjoint-Parallel and Skew-Resilient Stream Join", Gulisano et al., sections
    IV-A and V-C: `add` is its addTuple, `next_ready` its getNextReadyTuple. A row is ready when it is not later than
    any source's latest one, so no row that comes can precede it.

    Where we depart: the unit is a batch, so there is no skip list to insert tuples into, and a lock held for a
    microsecond per batch takes the place of compare-and-swap per tuple; times that are equal are ordered by the
    source's name (the paper leaves them open), so the order is a function of the rows alone, and a row at the least of
    the latest times is ready if the order puts it first; a source may promise a time, or end. What waits for a slow
    source is on disk beyond a bound. The paper's nodes live until every reader has passed them, and so do ours, in
    steps of at most `step_rows` rows.

    Cost: O(log(sources)) per row, about 2 ns per doubling of the sources, and one copy of the rows; O(sources) per
    step.

        source a: times 1 4 6     source b: times 2 4 5     source c: times 3
        ready: a1 b2 c3      the least of the latest times is c's: a and b wait for it
        c promises 5: a4 b4 b5 follow, a before b at the equal time 4
    """

    def __init__(
        self, readers: int = 1, step_rows: int = STEP_ROWS, spill_directory: str | None = None
    ) -> None:
        for name, value in (("readers", readers), ("step_rows", step_rows)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"ScaleGate: {name} must be a whole number of 1 or more, not {value!r}")
        self._step_rows = step_rows
        self._share = step_rows
        self._spill_directory = spill_directory
        self._sources: dict[SourceName, WaitingSource] = {}
        self._passed: tuple[Time, SourceName] | None = None
        self._seq = 0
        self._steps: deque[Ready] = deque()
        self._forgotten = 0
        self._cursors = [0] * readers
        self._merger = RunMerger()
        self._lock = threading.Lock()

    @property
    def merged(self) -> int:
        """Rows that have been put in order."""
        return self._seq

    @property
    def waiting(self) -> int:
        """Rows that are not ready."""
        return sum(source.waiting for source in self._sources.values())

    @property
    def kept(self) -> int:
        """Rows that are ready and that some reader has not asked for."""
        return sum(step.end - step.first for step in self._steps)

    @property
    def spilled_bytes(self) -> int:
        """Bytes of waiting rows that are on disk."""
        return sum(source.queue.disk_bytes for source in self._sources.values())

    def open(self, source: SourceName) -> None:
        """Make a source known: nothing is ready until it has sent rows, promised a time or ended. Cost: O(1)."""
        with self._lock:
            self._open(source)

    def add(self, source: SourceName, rows: pa.RecordBatch, times: Times, born: float = 0.0) -> int:
        """Take rows of a source, in its order; times do not fall from one call to the next.

        Rows that belong before what has been handed out, which only a source that was not known in time can have, are
        left out; returns their number. Cost: O(1), and for late rows O(log(rows)).
        """
        with self._lock:
            state = self._open(source)
            late = self._late(source, times)
            if late < len(times):
                state.append(Part.of(rows.slice(late) if late else rows, times[late:], born))
            return late

    def promise(self, source: SourceName, time: Time) -> None:
        """The source will send nothing earlier than `time`. Cost: O(1)."""
        with self._lock:
            state = self._open(source)
            if state.frontier is None or time > state.frontier:
                state.frontier = time

    def end(self, sources: Iterable[SourceName]) -> None:
        """No more rows of these sources will come. Cost: O(1) each."""
        with self._lock:
            for source in sources:
                self._open(source).ended = True

    def next_ready(self, reader: int = 0) -> Ready | None:
        """The next rows in order that this reader has not had, at most a step of them; None if none is ready.

        Readers get the same steps, in the same order. Cost: that of merging, for the first reader to ask.
        """
        with self._lock:
            at = self._cursors[reader] - self._forgotten
            if at == len(self._steps):
                step = self._release()
                if step is None:
                    return None
                self._steps.append(step)
            step = self._steps[at]
            self._cursors[reader] += 1
            while self._forgotten < min(self._cursors):
                self._steps.popleft()
                self._forgotten += 1
            return step

    def close(self) -> None:
        """Forget what waits, and give its disk space back."""
        with self._lock:
            for source in self._sources.values():
                source.queue.close()

    def check_invariants(self) -> None:
        for source in self._sources.values():
            for part in source.parts:
                # What waits is in order, and none of it empty.
                assert len(part.times) == part.rows.num_rows > 0
                assert not np.any(part.times[1:] < part.times[:-1])
                assert (part.first, part.last) == (part.times[0], part.times[-1])
            if source.parts:
                # Nothing that waits belongs before what has been handed out.
                assert self._passed is None or (source.parts[0].first, source.name) >= self._passed
            # What is on disk comes after what is in memory, and there is some of that.
            assert source.parts or not len(source.queue)
            assert len(source.behind) == len(source.queue)
            # The rows and the bytes that wait are those that are there.
            assert source.nbytes == sum(part.nbytes for part in source.parts)
            in_memory = sum(len(part.times) for part in source.parts)
            assert source.waiting == in_memory + sum(each.rows for each in source.behind)
        # What is kept is what the slowest reader has not had, without gaps.
        assert len(self._steps) == max(self._cursors) - min(self._cursors)
        ends = [step.end for step in self._steps]
        assert [step.first for step in self._steps][1:] == ends[:-1]
        assert not ends or ends[-1] == self._seq

    def _open(self, source: SourceName) -> WaitingSource:
        if source not in self._sources:
            self._sources[source] = WaitingSource(source, SpillQueue(memory=0, directory=self._spill_directory))
        return self._sources[source]

    def _late(self, source: SourceName, times: Times) -> int:
        if self._passed is None or not len(times) or (times[0].item(), source) >= self._passed:
            return 0
        time, name = self._passed
        return int(np.searchsorted(times, time, side="left" if source >= name else "right"))

    def _release(self) -> Ready | None:
        """Put the next step in order; None if nothing is ready."""
        known = [source for source in self._sources.values() if not source.ended]
        if any(source.frontier is None for source in known):
            return None
        # the earliest place at which a source could still deliver
        borders = [Border(source.frontier, source.name) for source in known if source.frontier is not None]
        border = self._within_a_step(min(borders, key=lambda border: border.place, default=None))
        taken = [(source.name, source.take(border)) for source in self._sources.values() if source.parts]
        runs = sorted(((name, parts) for name, parts in taken if parts), key=lambda run: run[0])
        return self._merge(runs) if runs else None

    def _within_a_step(self, border: Border | None) -> Border | None:
        """Lower the border where more than a step's rows wait.

        The new border is the earliest place at which a source has given its share; it may lie between rows of equal
        time of that source, so a step is bounded whatever the data. The share shrinks where sources overlap, and grows
        again, up to a whole step, where they take turns.
        """
        waiting = [source for source in self._sources.values() if source.parts]
        if sum(source.waiting for source in waiting) <= self._step_rows:
            return border
        if border is not None and sum(source.most_before(border) for source in waiting) <= self._step_rows:
            return border
        share = min(self._step_rows, 2 * self._share)
        while True:
            cut = min((source.cut(share) for source in waiting), key=lambda border: border.place)
            rows = sum(source.most_before(cut) for source in waiting)
            if rows <= self._step_rows or share == 1:
                break
            share = max(1, min(share * self._step_rows // rows, share * 7 // 8))
        self._share = share
        return cut if border is None or cut.place <= border.place else border

    def _merge(self, runs: list[tuple[SourceName, list[Part]]]) -> Ready:
        """Number the rows of a step; `runs` is in the order of the sources, which is that of equal times."""
        counts = [sum(len(part.times) for part in parts) for _, parts in runs]
        numbers = {stream: number for number, stream in enumerate(dict.fromkeys(name.stream for name, _ in runs))}
        stream_of = np.array([numbers[name.stream] for name, _ in runs])
        ends = np.cumsum(np.bincount(stream_of, counts)).astype(np.int64)
        total = int(ends[-1])
        if len(runs) == 1:
            seq, rows = np.arange(self._seq, self._seq + total), np.empty(0, np.int32)
        else:
            times = [part.times for _, parts in runs for part in parts]
            seq, rows = self._merger.merge(times, counts, stream_of, ends, self._seq)
        merged = {}
        begin = 0
        for stream, number in numbers.items():
            own = slice(begin, int(ends[number]))
            begin = own.stop
            batches = [part.rows for name, parts in runs if name.stream == stream for part in parts]
            batch = batches[0] if len(batches) == 1 else pa.concat_batches(batches)
            if np.count_nonzero(stream_of == number) > 1:  # one source's rows are in order as they are
                batch = batch.take(pa.array(rows[own]))
            merged[stream] = StreamRows(batch, seq[own])
        self._passed = max((parts[-1].last, name) for name, parts in runs)
        first, self._seq = self._seq, self._seq + total
        return Ready(first, self._seq, merged, min(part.born for _, parts in runs for part in parts))
