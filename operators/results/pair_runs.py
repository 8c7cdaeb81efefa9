"""Pairs in result order as runs, whose columns are written straight from the elements' answers.

A run holds the pairs of one later row that one answer gave. On the later row's side all pairs of a run show the same
row, so its value is read once and repeated; on the other side the values are gathered by the answer's positions. So no
list of pairs is written between the answers and the columns.

    answers to R rows 4, 5:  mutable part  [7 9] []        runs   R row 4: 2 3 | R row 4: 7 9 | R row 5: 3
                             segments      [2 3] [3]       R      4 4 4 4 5
                                                           S      2 3 7 9 3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from indexes import frozen, kernel
from operators.protocol.columns import Int64
from operators.protocol.sides import LEFT, RIGHT
from operators.results.gathering import POSITION_BYTES, gather_runs, positions_of_runs
from operators.results.probe_rows import TakenRows
from operators.results.result_order import Answer


@dataclass(frozen=True)
class PairRuns:
    """Some of the pairs of a list of runs: those numbered from `start` to before `stop`.

    sides:   the side of each run's later row.
    later:   its position.
    sources: the address of the positions of the earlier rows, which are one array in memory.
    ends:    the number of pairs before each run, and of all.
    held:    the arrays at these addresses, so that they stay.
    """

    sides: npt.NDArray[np.uint8]
    later: Int64
    sources: Int64
    ends: Int64
    held: tuple[Int64, ...]
    start: int
    stop: int

    # As other results have them: pairs are their own places, and have neither counts nor aggregates.
    matches = None
    places = None
    aggregates = ()

    def __len__(self) -> int:
        return self.stop - self.start

    def part(self, start: int, stop: int) -> PairRuns:
        """Some of them. Cost: O(1)."""
        start, stop = (min(self.start + each, self.stop) for each in (start, stop))
        return PairRuns(self.sides, self.later, self.sources, self.ends, self.held, start, stop)

    @cached_property
    def left(self) -> Int64:
        """The positions of the left rows. Cost: O(pairs), once."""
        return self._positions(LEFT)

    @cached_property
    def right(self) -> Int64:
        """The positions of the right rows. Cost: O(pairs), once."""
        return self._positions(RIGHT)

    def positions(self, side: int) -> Int64:
        """The positions of the rows of a side. Cost: O(pairs), once."""
        return self.right if side else self.left

    def gather(self, side: int, values: npt.NDArray[Any], base: int) -> npt.NDArray[Any]:
        """The values of the rows of a side, of which `values` holds those from position `base` on. Cost: O(pairs)."""
        gathered = np.empty(len(self), values.dtype)
        if len(gathered):
            gather_runs(side, *self._from, frozen(values), base, gathered)
        return gathered

    def _positions(self, side: int) -> Int64:
        positions = np.empty(len(self), np.int64)
        if len(positions):
            positions_of_runs(side, *self._from, positions)
        return positions

    @property
    def _from(self) -> tuple[int, int, npt.NDArray[np.uint8], Int64, Int64, Int64]:
        first = int(np.searchsorted(self.ends, self.start, side="right")) - 1
        return first, self.start - int(self.ends[first]), self.sides, self.later, self.sources, self.ends


def runs_of(
    rows: tuple[TakenRows, TakenRows], answers: tuple[Sequence[Answer], Sequence[Answer]], ordered: bool
) -> PairRuns | None:
    """The pairs of complete rows, given all answers to them, in result order.

    ordered: the pairs of a row come by position. None, then, if that takes merging: two answers to a row whose
             positions overlap, or a self-join's row that has pairs in both directions.
    Cost: O(rows * answers of each).
    """
    counts = tuple(np.zeros(sum(len(step.seq) for step in each.steps), np.int64) for each in rows)
    told: list[tuple[int, Answer]] = []
    for side in (LEFT, RIGHT):
        filled = [answer for answer in answers[side] if len(answer.matches.positions)]
        # for every row the mutable part's positions follow those of the segments; where not, `_add_runs` sees it
        filled.sort(key=lambda answer: int(answer.matches.positions[0]) if ordered else 0)
        for answer in filled:
            first = rows[side].first
            _count_runs(frozen(answer.matches.offsets), answer.listed_rows, answer.first - first, first, counts[side])
            told.append((side, answer))
    starts = tuple(np.empty(len(each), np.int64) for each in counts)
    in_both = _start_runs(frozen(rows[LEFT].seq), frozen(rows[RIGHT].seq), *map(frozen, counts), *starts)
    if ordered and in_both:
        return None
    runs = sum(int(each.sum()) for each in counts)
    sides, later = np.empty(runs, np.uint8), np.empty(runs, np.int64)
    sources, ends = np.empty(runs, np.int64), np.zeros(runs + 1, np.int64)
    last = tuple(np.full(len(each) if ordered else 0, -1) for each in counts)
    held = []
    for side, answer in told:
        positions = frozen(answer.matches.positions)
        held.append(positions)
        at = answer.listed_rows, answer.first, rows[side].first, positions.ctypes.data
        if not _add_runs(
            side, *at, frozen(answer.matches.offsets), positions, starts[side], last[side], sides, later, sources, ends
        ):
            return None
    np.cumsum(ends, out=ends)
    return PairRuns(frozen(sides), frozen(later), frozen(sources), frozen(ends), tuple(held), 0, int(ends[-1]))


@kernel
def _count_runs(offsets: Int64, listed: Int64, number: int, first: int, counts: Int64) -> None:
    """Count a run for each row that an answer has matches for.

    Its rows are at the positions `listed`, where position `first` is row number 0, or if none are listed, row `number`
    and those behind it.
    """
    for i in range(offsets.size - 1):
        counts[listed[i] - first if listed.size else number + i] += offsets[i + 1] > offsets[i]


@kernel
def _start_runs(
    left_seq: Int64, right_seq: Int64, left_counts: Int64, right_counts: Int64, left_starts: Int64, right_starts: Int64
) -> bool:
    """Number the runs in the order of their rows; whether a row has runs on either side, as in a self-join."""
    lefts, rights = len(left_seq), len(right_seq)
    total = left = right = 0
    in_both = False
    while left < lefts or right < rights:
        if right == rights or (left < lefts and left_seq[left] <= right_seq[right]):
            if right < rights and left_seq[left] == right_seq[right] and left_counts[left] and right_counts[right]:
                in_both = True
            left_starts[left] = total
            total += left_counts[left]
            left += 1
        else:
            right_starts[right] = total
            total += right_counts[right]
            right += 1
    return in_both


@kernel
def _add_runs(
    side: int,
    listed: Int64,
    position: int,
    first: int,
    source: int,
    offsets: Int64,
    positions: Int64,
    next_run: Int64,
    last: Int64,
    sides: npt.NDArray[np.uint8],
    later: Int64,
    sources: Int64,
    ends: Int64,
) -> bool:
    """Add the runs of an answer to rows of a side; `ends` gets their sizes.

    Its rows are at the positions `listed`, or if none are listed, from `position` on. Position `first` is row number 0.
    `next_run` advances. `last` holds the last position of each row so far, or is empty if nobody asks; False if one of
    the answer does not follow it.
    """
    for i in range(offsets.size - 1):
        begin, end = offsets[i], offsets[i + 1]
        if begin < end:
            at = listed[i] if listed.size else position + i
            row = at - first
            if last.size:
                if positions[begin] <= last[row]:
                    return False
                last[row] = positions[end - 1]
            run = next_run[row]
            next_run[row] = run + 1
            sides[run] = side
            later[run] = at
            sources[run] = source + POSITION_BYTES * begin
            ends[run + 1] = end - begin
    return True
