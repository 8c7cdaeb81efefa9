"""The kernels of a permutation with the memory they work in, which grows as matches come."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from indexes.bit_array import SLACK, empty_bit_array
from indexes.columns import Matches, frozen
from indexes.permutation_kernels import gather, scan_permutation, walk_permutation

KEPT_SIZES = 16
_KEPT = threading.local()
_NO_BITS = empty_bit_array(0)

Ranges = tuple[np.ndarray, np.ndarray]
"""Rank ranges [a, b) of a batch of probe rows."""


class RowFilter(NamedTuple):
    """What candidates must pass besides the two indexed dimensions, as the kernels take it."""

    ordered: bool
    windowed: bool  # whether the live ranges leave anything out
    live_low: np.ndarray
    live_high: np.ndarray
    ranks: np.ndarray  # of every dimension, a row each; none if there are no other dimensions
    dimensions: np.ndarray  # the other dimensions
    a: np.ndarray  # their ranges, a row for each
    b: np.ndarray
    negated: np.ndarray


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
    """All matches by scanning, None if more than `limit`. Cost: as `scan_permutation`."""
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


def walk(source: Candidates, sequence: np.ndarray, keep: RowFilter, expected: int, limit: int) -> Matches | None:
    """All matches by a walk over the probe rows in `sequence`. Cost: as `walk_permutation`.

    When room runs out the walk is taken up again where it stopped, with a new bit array: the walk
    back to that place costs no more than one pass over the block, and room doubles each time.
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
    """Probe rows by the middle of their range: open ranges by their bound, bands by both."""
    return frozen(np.argsort(ranges[0] + ranges[1]), np.int64)


def thread_scratch(rows: int, ordered: bool) -> tuple[np.ndarray, np.ndarray]:
    """Room for one probe row's candidates, and the bit array that orders them, kept by each thread for its next call.

    Large arrays fresh from the system cost a page fault every few thousand bytes. Kernels leave the bit array empty.
    """
    if getattr(_KEPT, "rows", -1) < rows:
        _KEPT.rows = rows
        _KEPT.scratch = np.empty(rows + SLACK, np.int32)
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
