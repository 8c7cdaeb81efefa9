"""The waiting rows of one source at a ScaleGate, in order or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise, takewhile

import numpy as np
import pyarrow as pa

from operators.intake.promise import Promise
from operators.intake.time_unit import moved
from operators.intake.waiting_run import LAST, Border, Part, Rank, SourceName, WaitingRun
from operators.values.takeable_types import take_rows
from topology import SpillQueue, Time, Times

MEMORY = 64 * 1024 * 1024
"""Bytes of a source's waiting rows that stay in memory; the rest is on disk."""

MEMORY_OF_ALL, LEAST_MEMORY = 256 * 1024 * 1024, 1024 * 1024
"""The same for all sources of a gate together, and what each of many sources still has."""


def memory_share(sources: int) -> int:
    """The bytes that stay in memory of each of so many sources."""
    return min(MEMORY, max(LEAST_MEMORY, MEMORY_OF_ALL // max(1, sources)))


RUNS_MERGED = 8
"""This many neighbouring runs that have been merged equally often are merged into one."""

PIECES = 64
"""A run goes to disk in about this many pieces; the first stays in memory."""


@dataclass
class WaitingSource:
    """One physical source: its waiting rows and its promise.

    A source in order has one run. A source that may be out of order has a run for each ascending sequence of batches.
    The offsets of a run follow those of the run before it, so taking runs in order keeps rows of equal time in order.
    Runs are merged as in a log-structured tree, so there are few of them and a row is copied few times.

    joined:   the last place that had passed when the source became known; its rows before that joined too late.
    promised: what its watermarks promise: rows before that are out of order.
    """

    name: SourceName
    spill_directory: str | None = None
    joined: tuple[Time, SourceName] | None = None
    frontier: Time | None = None
    ended: bool = False
    idle: bool = False
    promise: Promise | None = None
    promised: Time | None = None
    runs: list[WaitingRun] = field(default_factory=list)
    _numbers: int = 0
    _border: Border | None = None

    @property
    def waiting(self) -> int:
        """The number of waiting rows."""
        return sum(run.waiting for run in self.runs)

    @property
    def disk_bytes(self) -> int:
        """Bytes of waiting rows on disk."""
        return sum(run.queue.disk_bytes for run in self.runs)

    @property
    def nbytes(self) -> int:
        """Bytes of waiting rows, in memory and on disk."""
        return sum(run.nbytes for run in self.runs) + self.disk_bytes

    @property
    def border(self) -> Border | None:
        """The earliest place at which the source could still deliver; None if unknown."""
        if self._border is None and self.frontier is not None:
            self._border = Border(self.frontier, Rank(self.name, LAST))
        return self._border

    def append(self, part: Part, memory: int) -> None:
        """Add rows that are not earlier than any before them; beyond `memory` bytes they go to disk."""
        if not self.runs:
            self.runs.append(self._new_run())
        self.runs[0].append(part, memory)

    def insert(self, rows: pa.RecordBatch, times: Times, born: float) -> None:
        """Add rows in any order of time; their offsets follow those of all rows before them."""
        in_order = not np.any(times[1:] < times[:-1])
        if not in_order:
            order = np.argsort(times, kind="stable")
            rows, times = take_rows(rows, order), times[order]
        part = Part.of(rows, times, born)
        self.runs = [run for run in self.runs if run.parts]
        last = self.runs[-1] if self.runs else None
        if last is None or last.behind or part.first < last.parts[-1].last:
            last = self._new_run()
            last.copied = 0 if in_order else len(times)
            self.runs.append(last)
        last.append(part, last.nbytes + part.nbytes)
        self._tidy()

    def take_first(self, count: int) -> list[tuple[Rank, list[Part]]]:
        """Remove and return the first `count` rows in order of time and offset, by run."""
        runs = [run for run in self.runs if run.parts]
        shares = [count]
        if len(runs) > 1:
            times = [run.first_times(count) for run in runs]
            # at equal times the rows of the earlier run come first
            first = np.argsort(np.concatenate(times), kind="stable")[:count]
            of_run = np.repeat(np.arange(len(runs)), [len(each) for each in times])[first]
            shares = np.bincount(of_run, minlength=len(runs)).tolist()
        return [
            (run.rank, run.take(Border(run.parts[0].first, run.rank, run, share)))
            for run, share in zip(runs, shares, strict=False)
            if share
        ]

    def gather(self) -> list[Part]:
        """Return all waiting rows in order of time and offset; they wait in one run from now on."""
        parts = [part for _, taken in self.take_first(self.waiting) for part in taken]
        self.close()
        self.runs = [self._new_run()] if parts else []
        if any(later.first < earlier.last for earlier, later in pairwise(parts)):
            times = np.concatenate([part.times for part in parts])
            order = np.argsort(times, kind="stable")
            rows = take_rows(pa.concat_batches([part.rows for part in parts]), order)
            parts = [Part.of(rows, times[order], min(part.born for part in parts))]
        for part in parts:
            self.runs[0].append(part, MEMORY)
        return parts

    def advance(self, time: Time) -> None:
        """Record the promise that any row earlier than `time` will be late."""
        if self.frontier is None or time > self.frontier:
            self.frontier = time
            self._border = None

    def span(self) -> tuple[Time, Time] | None:
        """The least and the greatest time of the waiting rows; None if there are none."""
        kept = [run for run in self.runs if run.parts]
        ends = [run.behind[-1].last if run.behind else run.parts[-1].last for run in kept]
        return (min(run.parts[0].first for run in kept), max(ends)) if kept else None

    def rescale(self, factor: int) -> None:
        """Multiply all times, because the gate counts in a finer unit from now on; those of rows must fit."""
        for run in self.runs:
            run.rescale(factor)
        self.frontier = None if self.frontier is None else moved(self.frontier, factor)
        self.promised = None if self.promised is None else moved(self.promised, factor)
        if self.promise is not None:
            self.promise = self.promise.rescaled(factor)
        self._border = None

    def close(self) -> None:
        """Drop the waiting rows and free their disk space."""
        for run in self.runs:
            run.close()

    def check_invariants(self) -> None:
        for run in self.runs:
            run.check_invariants()
        # Runs are in order of their offsets; a source in order has one.
        numbers = [run.rank.number for run in self.runs]
        assert numbers == sorted(set(numbers))
        assert self.promise is not None or len(self.runs) <= 1

    def _new_run(self, first: WaitingRun | None = None) -> WaitingRun:
        """Make an empty run: after all others, or in place of those that begin with `first`."""
        if first is not None:
            return WaitingRun(first.rank, SpillQueue(memory=0, directory=self.spill_directory), level=first.level + 1)
        self._numbers += 1
        return WaitingRun(Rank(self.name, self._numbers), SpillQueue(memory=0, directory=self.spill_directory))

    def _tidy(self) -> None:
        """Keep the runs few and their memory bounded."""
        for run in self.runs:
            run.compact()
        in_memory = list(takewhile(lambda run: not run.behind, reversed(self.runs)))
        if sum(run.nbytes for run in in_memory) > MEMORY // 2:
            self._merge(in_memory[::-1], to_disk=True)
            return
        while len(alike := list(takewhile(self.runs[-1].is_like, reversed(self.runs)))) >= RUNS_MERGED:
            self._merge(alike[::-1])

    def _merge(self, newest: list[WaitingRun], to_disk: bool = False) -> None:
        """Replace the last runs by one."""
        merged = self._new_run(newest[0])
        parts = [part for run in newest for part in run.parts]
        times = np.concatenate([part.times for part in parts])
        order = np.argsort(times, kind="stable")  # at equal times the earlier run comes first
        rows = take_rows(pa.concat_batches([part.rows for part in parts]), order)
        whole = Part.of(rows, times[order], min(part.born for part in parts))
        if to_disk:
            step = -(-len(order) // PIECES)
            for at in range(0, len(order), step):
                piece = Part.of(rows.slice(at, step), whole.times[at : at + step], whole.born)
                # the first stays here, the second in the queue's memory: neither may keep the whole alive
                merged.append(piece.copy() if at <= step else piece, 0)
        else:
            merged.append(whole, whole.nbytes)
            merged.copied = len(order)
        self.runs[-len(newest) :] = [merged]
