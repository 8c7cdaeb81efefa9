"""Merges sorted runs of several streams into one order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from indexes import kernel, ordered_integers

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
_INT64 = np.dtype(np.int64)


class RunMerger:
    """Merges runs; keeps its working memory from one merge to the next.

    For example, the runs 1 4 6 | 2 4 | 3 of the streams 0 | 1 | 0 have the order 1 2 3 4 4 6. Numbered from 10 on,
    stream 0, whose rows are 1 4 6 3, has the numbers 10 12 13 15 in the order 0 3 1 2 of its rows; stream 1 has 11 14
    and the order 0 1.
    """

    def __init__(self) -> None:
        self._times = np.empty((2, 0), np.int64)
        self._order = np.empty((2, 0), np.int32)
        self._places = np.empty((2, 0), np.int32)

    def merge(
        self, times: Sequence[npt.NDArray[np.generic]], counts: Sequence[int], streams: Int64, ends: Int64, first: int
    ) -> tuple[Int64, Int32]:
        """Number the rows in order of time and then of run; return numbers and rows, stream after stream.

        times:   the parts of all runs, one after the other; ascending within a run.
        counts:  rows of each run.
        streams: the stream of each run; a stream's rows are those of its runs, one after the other.
        ends:    where each stream's part of the results ends.
        Cost: O(rows * log(runs)), about 3 ns per row and doubling of the runs.
        """
        bounds = np.array(list(accumulate(counts, initial=0)))
        total = int(bounds[-1])
        assert total < 2**31, "a step is far smaller"
        if total > self._times.shape[1]:
            room = 1 << (total - 1).bit_length()
            self._times, self._order = np.empty((2, room), np.int64), np.empty((2, room), np.int32)
            self._places = np.empty((2, room), np.int32)
        if all(part.dtype == _INT64 for part in times):
            np.concatenate(times, out=self._times[0, :total])
        else:
            self._times[0, :total] = ordered_integers(np.concatenate(times).astype(np.float64))
        seq, rows = np.empty(total, np.int64), np.empty(total, np.int32)
        order = self._order[_merge_runs(self._times, self._order, bounds.copy())]
        _split_by_stream(order, bounds, streams, ends, first, self._places, seq, rows)
        return seq, rows


@kernel
def _merge_runs(times: np.ndarray, order: np.ndarray, bounds: np.ndarray) -> int:
    """Merge the runs of times[0], with times[1] as the other half; return the half of `order` that has the result.

    Neighbouring runs are merged in pairs until one is left; runs that do not overlap are copied.
    """
    for row in range(bounds[-1]):
        order[0, row] = row
    half = 0
    runs = bounds.size - 1
    while runs > 1:
        source, index = times[half], order[half]
        target, target_index = times[1 - half], order[1 - half]
        for run in range(0, runs, 2):
            begin, middle, end = bounds[run], bounds[run + 1], bounds[min(run + 2, runs)]
            i, j, k = np.uint64(begin), np.uint64(middle), np.uint64(begin)
            i_end, j_end = np.uint64(middle), np.uint64(end)
            if begin < middle and middle < end and source[middle - 1] > source[middle]:
                while i < i_end and j < j_end:
                    a, b = source[i], source[j]
                    later = b < a  # at equal times the earlier run goes first
                    target[k] = b if later else a
                    target_index[k] = index[j if later else i]
                    step = np.uint64(later)
                    j += step
                    i += np.uint64(1) - step
                    k += np.uint64(1)
            while i < i_end:
                target[k] = source[i]
                target_index[k] = index[i]
                i += np.uint64(1)
                k += np.uint64(1)
            while j < j_end:
                target[k] = source[j]
                target_index[k] = index[j]
                j += np.uint64(1)
                k += np.uint64(1)
        merged = 0
        for run in range(0, runs, 2):
            merged += 1
            bounds[merged] = bounds[min(run + 2, runs)]
        runs = merged
        half = 1 - half
    return half


@kernel
def _split_by_stream(
    order: np.ndarray,
    bounds: np.ndarray,
    streams: np.ndarray,
    ends: np.ndarray,
    first: int,
    places: np.ndarray,
    seq: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Number the rows in order, from `first` on, and distribute them to their streams. Cost: O(rows)."""
    stream_of, local = places[0], places[1]
    taken = np.zeros(ends.size, np.int64)
    for run in range(streams.size):
        stream = streams[run]
        shift = taken[stream] - bounds[run]
        for row in range(bounds[run], bounds[run + 1]):
            stream_of[row] = stream
            local[row] = row + shift
        taken[stream] += bounds[run + 1] - bounds[run]
    cursors = ends - taken
    for place in range(np.uint64(bounds[-1])):
        merged = np.uint64(order[place])
        own = np.uint64(stream_of[merged])
        at = np.uint64(cursors[own])
        seq[at] = first + np.int64(place)
        rows[at] = local[merged]
        cursors[own] += 1
