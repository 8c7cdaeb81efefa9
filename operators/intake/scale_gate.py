"""ScaleGate: merges any number of sources into one order for any number of readers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indexes import check_whole_number
from operators.intake.gate_state import GateState
from operators.intake.late_rows import Late, Reason
from operators.intake.merged_runs import RunMerger
from operators.intake.promise import Promise
from operators.intake.source_progress import SourceProgress
from operators.intake.time_unit import fit
from operators.intake.waiting_run import Border, Part, SourceName, WaitingRun
from operators.intake.waiting_source import WaitingSource, memory_share
from operators.values.takeable_types import take_rows
from topology import Time, Times

Int64 = npt.NDArray[np.int64]

STEP_ROWS = 1 << 17
"""The default rows of a step: enough to make the cost per step vanish, few enough to fit in cache."""


@dataclass(frozen=True)
class StreamRows:
    """Rows of one stream in order, and their numbers in the order of all streams.

    parts: the times of the rows, part after part as they came; `order` puts them in order, None if they are.
    """

    rows: pa.RecordBatch
    seq: Int64
    parts: tuple[Times, ...]
    order: npt.NDArray[np.int32] | None

    def times(self) -> npt.NDArray[np.generic]:
        """The time of each row. Cost: O(rows)."""
        joined: npt.NDArray[np.generic] = self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)
        return joined if self.order is None else joined[self.order]


@dataclass(frozen=True)
class Ready:
    """Consecutive ready rows, numbers [first, end), by stream; `born` is when the oldest of them arrived.

    took: how many rows of each source are among them.
    """

    first: int
    end: int
    streams: Mapping[str, StreamRows]
    born: float
    took: Mapping[SourceName, int]


class ScaleGate:
    """Merges sources and gives the ready rows, in one order, to readers that each go at their own pace.

    Paper: "ScaleJoin: a Deterministic, Disjoint-Parallel and Skew-Resilient Stream Join", Gulisano et al., sections
    IV-A and V-C: `add` is its addTuple, `next_ready` its getNextReadyTuple. A row is ready when it is not later than
    the latest row of any source, so no row that still comes can precede it.

    Where we depart:
    - The unit is a batch. There is no skip list to insert tuples into, and a lock held for a microsecond per batch
      replaces compare-and-swap per tuple.
    - Equal times are ordered by the source's name (the paper leaves them open), so the order is a function of the rows
      alone. A row at the least of the latest times is ready if the order puts it first.
    - A source may promise a time, be out of order within a bound, be ignored while it is idle, or end.
    - Rows that wait for a slow source go to disk beyond a bound.
    As in the paper, rows are kept until every reader has passed them, here in steps of at most `step_rows` rows.

    Cost: O(log(sources)) per row, about 2 ns per doubling of the sources, and one copy of the rows; O(sources) per
    step.

        source a: times 1 4 6     source b: times 2 4 5     source c: times 3
        ready: a1 b2 c3      the least of the latest times is c's: a and b wait for it
        c promises 5: a4 b4 b5 follow, a before b at the equal time 4
    """

    def __init__(self, readers: int = 1, step_rows: int = STEP_ROWS, spill_directory: str | None = None) -> None:
        check_whole_number("ScaleGate", "readers", readers)
        check_whole_number("ScaleGate", "step_rows", step_rows)
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
        self._drained = False  # nothing is ready until a source sends, promises, falls silent or ends
        self._lock = threading.Lock()

    @property
    def merged(self) -> int:
        """The number of rows that have been put in order."""
        return self._seq

    @property
    def waiting(self) -> int:
        """The number of rows that are not ready."""
        with self._lock:
            return sum(source.waiting for source in self._sources.values())

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the rows that are not ready."""
        with self._lock:
            return sum(source.nbytes for source in self._sources.values())

    @property
    def passed(self) -> tuple[Time, SourceName] | None:
        """The time and the source of the last row that has been put in order."""
        return self._passed

    @property
    def kept(self) -> int:
        """The number of ready rows that some reader has not taken."""
        with self._lock:
            return sum(step.end - step.first for step in self._steps)

    @property
    def spilled_bytes(self) -> int:
        """Bytes of waiting rows on disk."""
        with self._lock:
            return sum(source.disk_bytes for source in self._sources.values())

    def progress(self) -> list[SourceProgress]:
        """How far each source is, and whether rows wait for it. Cost: O(sources)."""
        with self._lock:
            sources = list(self._sources.values())
            held = [source for source in sources if not (source.ended or source.idle)]
            borders = [source.border for source in held]
            least = min((border.place for border in borders if border is not None), default=None)
            silent = any(border is None for border in borders)
            awaited = set()
            if any(source.waiting for source in sources):
                awaited = {
                    source.name
                    for source, border in zip(held, borders, strict=True)
                    if (border is None if silent else border is not None and border.place == least)
                }
            return [
                SourceProgress(
                    source.name, source.frontier, source.waiting, source.ended, source.idle, source.name in awaited
                )
                for source in sources
            ]

    def open(self, source: SourceName, bound: Time | None = None) -> None:
        """Announce a source: nothing is ready until it has sent rows, promised a time or ended. Cost: O(1).

        bound: the least bound of its rows, whatever `add` says; see there. Only before its first rows.
        """
        with self._lock:
            state = self._open(source)
            if bound is not None:
                state.promise = state.promise or Promise(bound)

    def add(
        self, source: SourceName, rows: pa.RecordBatch, times: Times, born: float = 0.0, bound: Time | None = None
    ) -> Late | None:
        """Take the next rows of a source; the source is no longer idle.

        bound: how much earlier than the greatest time before it a row may be; None: times never fall.

        Late rows are left out and returned: those beyond the bound, and those that belong before rows that readers have
        been given. Only a source that joined late or was idle can have the latter.
        Cost: O(1); with a bound O(log(rows)) per row that has to wait.
        """
        with self._lock:
            state = self._open(source)
            state.idle = False
            self._drained = False
            if not len(times):
                return None
            late = self._late(state, times, bound)
            if late is not None:
                taken = late.others(len(times))
                rows, kept = take_rows(rows, np.flatnonzero(taken)), times[taken]
            else:
                kept = times
            if state.promise is not None:
                if len(kept):
                    state.insert(rows, kept, born)
                assert state.promise.time is not None
                state.advance(state.promise.time)
            else:
                if len(kept):
                    state.append(Part.of(rows, kept, born), memory_share(len(self._sources)))
                state.advance(times[-1].item())
            return late

    def promise(self, source: SourceName, time: Time) -> None:
        """Record the promise that the source will send nothing earlier than `time`. Cost: O(1)."""
        with self._lock:
            state = self._open(source)
            state.promised = time if state.promised is None else max(time, state.promised)
            state.advance(time)
            self._drained = False

    def is_held(self) -> bool:
        """Whether nothing can pass because some source has neither sent nor promised anything, or no row waits."""
        with self._lock:
            sources = self._sources.values()
            silent = any(source.border is None for source in sources if not (source.ended or source.idle))
            return silent or not any(source.waiting for source in sources)

    def fits(self, factor: int) -> bool:
        """Whether the times of all waiting rows can be multiplied."""
        with self._lock:
            spans = [source.span() for source in self._sources.values()]
            return all(fit(*span, factor) for span in spans if span is not None)

    def rescale(self, factor: int) -> None:
        """Count in a unit that is `factor` times finer from now on; only before the first row has passed.

        The times of all waiting rows must fit. Cost: O(waiting rows).
        """
        with self._lock:
            assert self._passed is None, "what has passed counts in the unit before"
            for source in self._sources.values():
                source.rescale(factor)
            self._drained = False

    def set_idle(self, source: SourceName) -> None:
        """Ignore the source in progress until its next rows. Its waiting rows pass with those of the others."""
        with self._lock:
            self._open(source).idle = True
            self._drained = False

    def end(self, sources: Iterable[SourceName]) -> None:
        """End these sources: no more of their rows will come. Cost: O(1) each."""
        with self._lock:
            for source in sources:
                self._open(source).ended = True
            self._drained = False

    def next_ready(self, reader: int = 0) -> Ready | None:
        """Return the next step for this reader; None if no row is ready.

        All readers get the same steps, in the same order. Cost: that of merging, for the first reader to ask.
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

    def repeat(self, took: Mapping[SourceName, int]) -> Ready:
        """Put the next rows of these sources in order, so many of each: a step that another gate has released.

        Only for a gate with one reader that has taken all steps, which holds the same rows as the other one did.
        """
        with self._lock:
            taken = [run for source, count in took.items() for run in self._sources[source].take_first(count)]
            self._drained = False
            return self._merge([(rank.name, parts) for rank, parts in sorted(taken, key=lambda run: run[0])])

    def state(self) -> GateState:
        """Return all that another gate needs to go on. Cost: O(waiting rows), which are loaded from disk."""
        with self._lock:
            return GateState(self._seq, self._passed, [(source, source.gather()) for source in self._sources.values()])

    def resume(self, state: GateState, hears_again: bool = True) -> None:
        """Go on where another gate was; only for a new gate.

        hears_again: sources that are idle say so again, and repeat their promises.
        """
        with self._lock:
            self._seq, self._passed = state.seq, state.passed
            for known, parts in state.sources:
                source = WaitingSource(known.name, self._spill_directory, known.joined)
                source.frontier, source.ended, source.promise = known.frontier, known.ended, known.promise
                if not hears_again:
                    source.idle, source.promised = known.idle, known.promised
                for part in parts:
                    source.append(part, memory_share(len(state.sources)))
                self._sources[known.name] = source

    def close(self) -> None:
        """Drop the waiting rows and free their disk space."""
        with self._lock:
            for source in self._sources.values():
                source.close()

    def check_invariants(self) -> None:
        for source in self._sources.values():
            source.check_invariants()
            for run in source.runs:
                # No waiting row belongs before rows that have been given out.
                assert not run.parts or self._passed is None or (run.parts[0].first, source.name) >= self._passed
        # The kept steps are those that the slowest reader has not taken, without gaps.
        assert len(self._steps) == max(self._cursors) - min(self._cursors)
        ends = [step.end for step in self._steps]
        assert [step.first for step in self._steps][1:] == ends[:-1]
        assert not ends or ends[-1] == self._seq

    def _open(self, source: SourceName) -> WaitingSource:
        if source not in self._sources:
            self._sources[source] = WaitingSource(source, self._spill_directory, self._passed)
        return self._sources[source]

    def _late(self, state: WaitingSource, times: Times, bound: Time | None) -> Late | None:
        """Find the late ones among the next rows of a source, and why they are late."""
        late: Late | None = None
        if bound is not None:
            state.promise = state.promise or Promise(bound)
            state.promise.bound = max(state.promise.bound, bound)
        if state.promise is not None:
            late = Late.mark(None, state.promise.late(times), Reason.OUT_OF_ORDER)
        if state.promised is not None:
            late = Late.mark(late, times < state.promised, Reason.OUT_OF_ORDER)
        if self._passed is None:
            return late
        earliest = times[0] if state.promise is None else times.min()
        if (earliest.item(), state.name) < self._passed:
            if state.joined is not None:
                late = Late.mark(late, _before(times, state.name, state.joined), Reason.JOINED_TOO_LATE)
            late = Late.mark(late, _before(times, state.name, self._passed), Reason.WAS_IDLE)
        return late

    def _release(self) -> Ready | None:
        """Put the next step in order; None if no row is ready."""
        if self._drained:
            return None
        known = [source.border for source in self._sources.values() if not (source.ended or source.idle)]
        borders = [border for border in known if border is not None]
        if len(borders) < len(known):
            return None
        runs = [run for source in self._sources.values() for run in source.runs if run.parts]
        if not runs:
            return None
        last = min(borders, key=lambda border: border.place, default=None)
        border = self._within_a_step(last, runs)
        self._drained = border is last
        taken = [(run.rank, run.take(border)) for run in runs]
        ready = sorted(((rank, parts) for rank, parts in taken if parts), key=lambda run: run[0])
        return self._merge([(rank.name, parts) for rank, parts in ready]) if ready else None

    def _within_a_step(self, border: Border | None, waiting: list[WaitingRun]) -> Border | None:
        """Lower the border if more than a step's rows wait.

        The new border is the earliest place at which a source has given its share. It may lie between rows of equal
        time of that source, so steps are bounded for any data. The share shrinks where sources overlap in time, and
        grows again, up to a whole step, where they take turns.
        """
        if sum(run.waiting for run in waiting) <= self._step_rows:
            return border
        if border is not None and sum(run.most_before(border) for run in waiting) <= self._step_rows:
            return border
        share = min(self._step_rows, 2 * self._share)
        while True:
            cut = min((run.cut(share) for run in waiting), key=lambda border: border.place)
            rows = sum(run.most_before(cut) for run in waiting)
            if rows <= self._step_rows or share == 1:
                break
            share = max(1, min(share * self._step_rows // rows, share * 7 // 8))
        self._share = share
        return cut if border is None or cut.place <= border.place else border

    def _merge(self, runs: list[tuple[SourceName, list[Part]]]) -> Ready:
        """Number the rows of a step; `runs` are in the order of sources and offsets, the order at equal times."""
        counts = [sum(len(part.times) for part in parts) for _, parts in runs]
        total = sum(counts)
        runs_of: dict[str, list[int]] = {}
        for run, (name, _) in enumerate(runs):
            runs_of.setdefault(name.stream, []).append(run)
        ends = list(accumulate(sum(counts[run] for run in own) for own in runs_of.values()))
        if len(runs) == 1:
            seq, rows = np.arange(self._seq, self._seq + total), np.empty(0, np.int32)
        else:
            times = [part.times for _, parts in runs for part in parts]
            numbers = {stream: number for number, stream in enumerate(runs_of)}
            stream_of = np.array([numbers[name.stream] for name, _ in runs])
            seq, rows = self._merger.merge(times, counts, stream_of, np.array(ends), self._seq)
        merged = {}
        begin = 0
        for (stream, own), end in zip(runs_of.items(), ends, strict=True):
            parts = [part for run in own for part in runs[run][1]]
            batch = parts[0].rows if len(parts) == 1 else pa.concat_batches([part.rows for part in parts])
            order = None
            if len(own) > 1:  # the rows of a single run are in order already
                order = rows[begin:end]
                batch = take_rows(batch, order)
            merged[stream] = StreamRows(batch, seq[begin:end], tuple(part.times for part in parts), order)
            begin = end
        self._passed = max((parts[-1].last, name) for name, parts in runs)
        first, self._seq = self._seq, self._seq + total
        took: dict[SourceName, int] = {}
        for (name, _), count in zip(runs, counts, strict=True):
            took[name] = took.get(name, 0) + count
        return Ready(first, self._seq, merged, min(part.born for _, parts in runs for part in parts), took)


def _before(times: Times, source: SourceName, place: tuple[Time, SourceName]) -> npt.NDArray[np.bool_]:
    """Mask the rows of a source that belong before a place in the order."""
    time, name = place
    before: npt.NDArray[np.bool_] = times < time if source >= name else times <= time
    return before
