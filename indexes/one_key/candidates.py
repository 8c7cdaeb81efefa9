"""From the candidates of one indexed dimension to matches: bands, filters, room, order.

An index over one key answers bands, closed ranges of keys that belong to probe rows: it visits the positions of all
rows whose key lies in a band. This module holds the part that all such indexes share: how a probe batch becomes
bands, how candidates are filtered (by live range and by the other dimensions), how room for matches grows, and how
matches are brought into the order of the probe rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from indexes.kernels.columns import Interval, Live, Matches, frozen
from indexes.kernels.compiled import kernel
from indexes.kernels.ordered_integers import GREATEST, LEAST, ordered_integers
from indexes.kernels.position_order import order_rows
from indexes.kernels.radix_sort import sorted_with_order

KEPT_ROOM = 1 << 20
"""Each thread keeps room for so many matches between calls."""

_KEPT = threading.local()


class Probe(NamedTuple):
    """A probe batch in the form that kernels take: bands in ascending order of `low`, and the filters.

    A probe row has no band, one, or several that do not overlap.
    """

    row: np.ndarray  # the probe row of each band
    low: np.ndarray  # each band's keys, both ends included; no band is empty
    high: np.ndarray
    start: np.ndarray  # by probe row: the live positions [start, end)
    end: np.ndarray
    mask: int  # the other dimensions' keys are at [dimension, position & mask]
    others: np.ndarray
    other_low: np.ndarray  # [dimension, probe row]
    other_high: np.ndarray
    other_negated: np.ndarray


Visit = Callable[[int, int, np.ndarray, np.ndarray, Probe], tuple[int, int, int]]
"""`visit(band, used, positions, ends, probe)`: write the matches of the bands from `band` on.

Each position that passes the filters (`passes`) goes to `positions[used]`, and `used` grows by one; after band b,
`ends[b]` becomes `used`. Returns (number of bands, used, used) when all bands are done. When a band does not fit
into `positions`, returns (that band, `used` before it, `used` that it needs): discard the band's matches and call
again from it with more room.
"""


def bands_of(interval: Interval) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The bands of a dimension's interval, as (row, low, high) by ascending low. Cost: O(n log n).

    A negated interval gives two bands: everything below it and everything above.
    """
    low, high = ordered_integers(interval.low), ordered_integers(interval.high)
    rows = np.arange(len(interval))
    if interval.negated:
        below = np.where(low <= high, low, GREATEST)
        above = np.where(low <= high, high, GREATEST)
        has_below, has_above = below > LEAST, above < GREATEST
        whole = low > high
        below = below[has_below] - np.where(whole[has_below], 0, 1)
        rows = np.concatenate([rows[has_below], rows[has_above]])
        low = np.concatenate([np.full(len(below), LEAST), above[has_above] + 1])
        high = np.concatenate([below, np.full(len(rows) - len(below), GREATEST)])
    elif not (low <= high).all():
        some = low <= high
        rows, low, high = rows[some], low[some], high[some]
    ordered, order = sorted_with_order(low)
    return frozen(rows[order]), ordered, frozen(high[order])


@kernel
def passes(probe: Probe, row: int, position: int) -> bool:
    """Whether a candidate is live for the probe row and lies in the intervals of the other dimensions."""
    if position < probe.start[row] or position >= probe.end[row]:
        return False
    for d in range(probe.others.shape[0]):
        value = probe.others[d, position & probe.mask]
        inside = value >= probe.other_low[d, row] and value <= probe.other_high[d, row]
        if inside == probe.other_negated[d]:
            return False
    return True


def collect(visits: Sequence[Visit], probe: Probe, probes: int, limit: int, ordered: bool) -> Matches | None:
    """The matches of all visits together, or None if there are more than `limit`.

    Cost: the visits', O(bands + matches), and O(m log m) for each probe row's m matches if ordered.
    """
    bands = len(probe.row)
    if not visits:
        return Matches.empty(probes)
    ends = np.empty((len(visits), bands), np.int64)
    positions = _room(4 * bands + 1024)
    used = 0
    for part, visit in enumerate(visits):
        band = 0
        while True:
            band, used, needed = visit(band, used, positions, ends[part], probe)
            if band == bands:
                break
            if needed > limit:
                return None
            wider = np.empty(2 * needed, np.int64)
            wider[:used] = positions[:used]
            positions = wider
            if len(wider) <= KEPT_ROOM:
                _KEPT.positions = wider
    if used > limit:
        return None
    offsets = np.zeros(probes + 1, np.int64)
    target = np.empty(used, np.int64)
    _by_row(probe.row, ends, positions, offsets, target, ordered)
    return Matches(offsets, target)


def _room(size: int) -> np.ndarray:
    """Room of at least `size`. Each thread keeps its own, because fresh memory costs a page fault per page."""
    kept: np.ndarray | None = getattr(_KEPT, "positions", None)
    if kept is None or len(kept) < size:
        kept = np.empty(size, np.int64)
        if size <= KEPT_ROOM:
            _KEPT.positions = kept
    return kept


@kernel
def _by_row(
    row: np.ndarray, ends: np.ndarray, positions: np.ndarray, offsets: np.ndarray, target: np.ndarray, ordered: bool
) -> None:
    begin = 0
    for part in range(ends.shape[0]):
        for band in range(row.size):
            offsets[row[band] + 1] += ends[part, band] - begin
            begin = ends[part, band]
    cursor = np.empty(offsets.size - 1, np.int64)
    for i in range(cursor.size):
        cursor[i] = offsets[i]
        offsets[i + 1] += offsets[i]
    source = 0
    for part in range(ends.shape[0]):
        for band in range(row.size):
            place = cursor[row[band]]
            while source < ends[part, band]:
                target[place] = positions[source]
                place += 1
                source += 1
            cursor[row[band]] = place
    if ordered:
        order_rows(target, offsets)


def live_of(live: Live, below: int) -> tuple[np.ndarray, np.ndarray]:
    """The live ranges in the form that kernels take, without expired positions. Cost: O(n)."""
    return (live.start if len(live) and live.extent[0] >= below else frozen(np.maximum(live.start, below))), live.end
