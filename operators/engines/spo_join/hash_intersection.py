"""Intersection through a hash table, with which the paper compares SPO-Join's bit arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from indexes import Live, Matches, PermutationOffsetJoin, Ranges, frozen, kernel

SPREAD = np.uint64(0x9E3779B97F4A7C15)


def hash_intersection(
    limit: int,
    block: PermutationOffsetJoin,
    ranges: Sequence[Ranges],
    negated: Sequence[bool],
    live: Live,
    *,
    ordered: bool,
) -> Matches | None:
    """The rows of a block that lie in every dimension's range of ranks; None if there are more than `limit`.

    Paper: SPO-Join, section 3.2, the "naive approach": for each probe row, the rows that the first predicate found go
    into a hash table, and each other predicate's rows are looked up there.

        ranks of dimension 0 -> rows 4 1 7     into the table, each met once
        ranks of dimension 1 -> rows 7 2 4     7 and 4 are met twice: they are the answer

    Cost: O(rows found by all predicates), a random access each.
    """
    slots = 1 << max(3, (2 * block.rows - 1).bit_length())
    table = np.full((slots, 3), -1, np.int64)
    return intersect_by(_intersect, table, limit, block, ranges, negated, live, ordered=ordered)


def intersect_by(
    intersect: Callable[..., int],
    scratch: np.ndarray,
    limit: int,
    block: PermutationOffsetJoin,
    ranges: Sequence[Ranges],
    negated: Sequence[bool],
    live: Live,
    *,
    ordered: bool,
) -> Matches | None:
    """The matches that a kernel such as `_intersect` finds with an array of its own, `scratch`."""
    probes = len(live)
    orders = frozen(np.concatenate([run.order for run in block.runs]))
    bounds = np.cumsum([0, *(len(run) for run in block.runs)])
    starts, stops = (np.stack([each[which] for each in ranges]).astype(np.int64) for which in (0, 1))
    offsets = np.zeros(probes + 1, np.int64)
    positions = np.empty(block.rows + 1024, np.int64)
    row = 0
    while True:
        row = intersect(
            row, orders, bounds, starts, stops, np.array(negated), live.start, live.end, block.first_position, ordered,
            scratch, offsets, positions,
        )  # fmt: skip
        used = int(offsets[row])
        if used > limit:
            return None
        if row == probes:
            return Matches(offsets, positions[:used].copy())
        larger = np.empty(2 * len(positions) + block.rows, np.int64)
        larger[:used] = positions[:used]
        positions = larger


@kernel
def _slot(table: np.ndarray, row: int, probe: int) -> int:
    """The slot of a row, or a free slot for it: entries of other probe rows count as free."""
    mask = np.uint64(table.shape[0] - 1)
    at = ((np.uint64(row) * SPREAD) >> np.uint64(32)) & mask
    while table[at, 0] == probe and table[at, 1] != row:
        at = (at + np.uint64(1)) & mask
    return int(at)


@kernel
def _intersect(
    row: int,
    orders: np.ndarray,
    bounds: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    negated: np.ndarray,
    first: np.ndarray,
    end: np.ndarray,
    origin: int,
    ordered: bool,
    table: np.ndarray,
    offsets: np.ndarray,
    positions: np.ndarray,
) -> int:
    """Answer the probe rows from number `row` on; return the number of the first one for which room may be short."""
    dimensions = starts.shape[0]
    for probe in range(row, starts.shape[1]):
        begin = used = offsets[probe]
        if positions.size - used < bounds[1]:
            return probe
        for dimension in range(dimensions):
            base, length = bounds[dimension], bounds[dimension + 1] - bounds[dimension]
            start = starts[dimension, probe]
            stop = max(start, stops[dimension, probe])
            if negated[dimension]:
                parts = ((0, start), (stop, length))
            else:
                parts = ((start, stop), (stop, stop))
            for part in parts:
                for rank in range(part[0], part[1]):
                    at = _slot(table, orders[base + rank], probe)
                    if dimension == 0:
                        table[at, 0] = probe
                        table[at, 1] = orders[base + rank]
                        table[at, 2] = 1
                    elif table[at, 0] == probe and table[at, 2] == dimension:
                        table[at, 2] = dimension + 1
                    position = origin + orders[base + rank]
                    met = table[at, 0] == probe and table[at, 2] == dimensions
                    if dimension == dimensions - 1 and met and first[probe] <= position < end[probe]:
                        positions[used] = position
                        used += 1
        if ordered:
            positions[begin:used].sort()
        offsets[probe + 1] = used
    return starts.shape[1]
