"""Run the kernels of a permutation in memory that grows with the matches."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from indexes.kernels.bit_array import empty_bit_array
from indexes.kernels.columns import Matches, frozen
from indexes.permutations.bit_kernels import gather, scan_permutation, walk_permutation
from indexes.permutations.merge_sort_tree import MergeSortTree, Slices
from indexes.permutations.row_order import order_room
from indexes.permutations.slice_kernels import filter_slices, place_rows, place_slices

KEPT_SIZES = 16
FILTERED_ROOM = 1 << 20
"""Initial room for matches if a filter reduces the candidates by an unknown amount."""

_KEPT = threading.local()
_NO_BITS = empty_bit_array(0)

Ranges = tuple[np.ndarray, np.ndarray]
"""Rank ranges [a, b) of a batch of probe rows."""


class RowFilter(NamedTuple):
    """The filters beyond the two indexed dimensions, in the form that kernels take."""

    ordered: bool
    windowed: bool  # whether the live ranges leave out any row
    live_low: np.ndarray
    live_high: np.ndarray
    ranks: np.ndarray  # [dimension, row], or empty if there are no other dimensions
    dimensions: np.ndarray  # the other dimensions
    a: np.ndarray  # their ranges, a row for each
    b: np.ndarray
    negated: np.ndarray


_NO_RANKS = frozen(np.empty((0, 0), np.int32))
NO_DIMENSIONS = (
    _NO_RANKS,
    frozen(np.empty(0, np.int64)),
    _NO_RANKS,
    _NO_RANKS,
    frozen(np.empty(0, np.bool_)),
)
"""The last fields of a `RowFilter` without other dimensions."""


class Candidates(NamedTuple):
    """Where the candidates come from: ranks of one dimension, with partners in another."""

    first_position: int
    rows: int
    order: np.ndarray
    partner: np.ndarray
    partner_order: np.ndarray
    ranges: Ranges
    partner_ranges: Ranges


def scan(source: Candidates, keep: RowFilter, expected: int, limit: int) -> Matches | None:
    """All matches by scanning, or None if there are more than `limit`. Cost: as `scan_permutation`."""
    probes = len(source.ranges[0])
    scratch, words = thread_scratch(source.rows, keep.ordered)
    offsets = np.empty(probes + 1, np.int64)
    offsets[0] = 0
    positions = np.empty(min(expected, limit), np.int64)
    done = 0
    while True:
        done, needed = scan_permutation(
            done, offsets, positions, scratch, words, source.order, source.partner, *source.ranges,
            *source.partner_ranges, source.rows, source.first_position, *keep,
        )  # fmt: skip
        if done == probes:
            return Matches(offsets, positions[:needed])
        if needed > limit:
            return None
        positions = larger(positions, int(offsets[done]), min(2 * needed, limit))


class Listing(NamedTuple):
    """Matches that a merge-sort tree has found and counted, but not yet written."""

    tree: MergeSortTree
    slices: Slices
    counts: np.ndarray
    rows: int
    first_position: int
    ordered: bool

    def place(self, cursor: np.ndarray, positions: np.ndarray) -> None:
        """Write each probe row's matches from its place in `cursor` on, and advance the cursor. Cost: O(matches)."""
        scratch, words = thread_scratch(self.rows, self.ordered)
        place_slices(
            cursor, positions, scratch, words, self.tree.rows.reshape(-1), *self.slices, self.rows,
            self.first_position, self.ordered,
        )  # fmt: skip


def listing(
    tree: MergeSortTree, values: Ranges, positions: Ranges, rows: int, first_position: int, keep: RowFilter, limit: int
) -> Matches | Listing | None:
    """All matches by a merge-sort tree, or None if there are more than `limit`. Unfiltered matches are not written yet.

    Cost: as `MergeSortTree.slices`, and O(candidates) if there is a filter.
    """
    slices, counts = tree.slices(values, positions)
    candidates = int(counts.sum())
    if not keep.windowed and not len(keep.dimensions):
        if candidates > limit:
            return None
        return Listing(tree, slices, counts, rows, first_position, keep.ordered)
    probes = len(counts)
    scratch, words = thread_scratch(rows, keep.ordered)
    offsets = np.empty(probes + 1, np.int64)
    offsets[0] = 0
    found = np.empty(min(candidates, limit, FILTERED_ROOM), np.int64)
    done = 0
    while True:
        done, needed = filter_slices(
            done, offsets, found, scratch, words, tree.rows.reshape(-1), *slices, rows, first_position, *keep
        )
        if done == probes:
            return Matches(offsets, found[:needed])
        if needed > limit:
            return None
        found = larger(found, int(offsets[done]), min(2 * needed, limit))


def written(answers: Sequence[Matches | Listing]) -> Matches:
    """The matches of the same probe rows with several blocks; each row's in the order of the blocks.

    Cost: O(blocks * probes + matches); a `Listing` is written once, straight to its place.
    """
    filled = [each for each in answers if isinstance(each, Listing) or len(each.positions)]
    if len(filled) <= 1:
        only = (filled or answers)[0]
        if isinstance(only, Matches):
            return only
    offsets = np.zeros(len(answers[0].counts if isinstance(answers[0], Listing) else answers[0]) + 1, np.int64)
    for each in filled:
        offsets[1:] += each.counts if isinstance(each, Listing) else each.counts()
    np.cumsum(offsets, out=offsets)
    positions = np.empty(offsets[-1], np.int64)
    cursor = offsets[:-1].copy()
    for each in filled:
        if isinstance(each, Listing):
            each.place(cursor, positions)
        else:
            place_rows(cursor, positions, frozen(each.offsets), frozen(each.positions))
    return Matches(offsets, positions)


def walk(source: Candidates, sequence: np.ndarray, keep: RowFilter, expected: int, limit: int) -> Matches | None:
    """All matches by a walk over the probe rows in `sequence`. Cost: as `walk_permutation`.

    When room runs out, the walk resumes where it stopped, with a new bit array. Refilling it costs at most one pass
    over the block, and room doubles each time.
    """
    probes = len(source.ranges[0])
    scratch, words = thread_scratch(source.rows, keep.ordered)
    begins = np.zeros(probes, np.int64)
    offsets = np.zeros(probes + 1, np.int64)
    found = np.empty(min(expected, limit), np.int32)
    done, total = 0, np.int64(0)
    while True:
        done, total, needed = walk_permutation(
            done, total, begins, offsets[1:], found, scratch, words,
            empty_bit_array(len(source.partner_order)), sequence, source.partner,
            source.partner_order, *source.ranges, *source.partner_ranges, source.rows, *keep,
        )  # fmt: skip
        if done == probes:
            break
        if needed > limit:
            return None
        found = larger(found, total, min(2 * needed, limit))
    np.cumsum(offsets, out=offsets)
    positions = np.empty(total, np.int64)
    gather(begins, offsets, found, source.first_position, positions)
    return Matches(offsets, positions)


def walk_sequence(ranges: Ranges) -> np.ndarray:
    """Probe rows in the order of the middle of their range: open ranges by their bound, bands by both."""
    return frozen(np.argsort(ranges[0] + ranges[1]), np.int64)


def thread_scratch(rows: int, ordered: bool) -> tuple[np.ndarray, np.ndarray]:
    """Room for one probe row's candidates and the bit array that sorts them. Each thread keeps them for its next call.

    Large arrays fresh from the system cost a page fault every few thousand bytes. Kernels leave the bit array empty.
    """
    if getattr(_KEPT, "rows", -1) < rows:
        _KEPT.rows = rows
        _KEPT.scratch = np.empty(order_room(rows), np.int32)
        _KEPT.words = {}
    if not ordered:
        return _KEPT.scratch, _NO_BITS
    words = _KEPT.words.get(rows)
    if words is None:
        if len(_KEPT.words) >= KEPT_SIZES:
            _KEPT.words.clear()
        words = _KEPT.words[rows] = empty_bit_array(rows)
    return _KEPT.scratch, words


def larger(array: np.ndarray, used: int, size: int) -> np.ndarray:
    """A larger array with the same first `used` elements. Cost: O(used)."""
    larger = np.empty(size, array.dtype)
    larger[:used] = array[:used]
    return larger
