"""Intersection of bit arrays, as the paper writes SPO-Join's mutable part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes import Live, Matches, PermutationOffsetJoin, Ranges, kernel
from operators.engines.spo_join.hash_intersection import intersect_by


def bit_intersection(
    limit: int,
    block: PermutationOffsetJoin,
    ranges: Sequence[Ranges],
    negated: Sequence[bool],
    live: Live,
    *,
    ordered: bool,
) -> Matches | None:
    """The rows of a block that lie in every dimension's range of ranks; None if there are more than `limit`.

    Paper: SPO-Join, section 3.2, figure 4: for each probe row and predicate a bit array, as long as the block, with a
    bit for each row that the predicate found; a logical AND of the arrays; a scan of the result.

        ranks of dimension 0 -> rows 4 1 7     bits 0 1 0 0 1 0 0 1
        ranks of dimension 1 -> rows 7 2 4     bits 0 0 1 0 1 0 0 1     AND: bits 4 and 7

    Where we depart: the arrays are made here, from the ranges of ranks, instead of travelling from the predicate
    elements.

    Cost: O(rows found by all predicates + rows of the block / 64) for each probe row.
    """
    words = np.zeros((2, (block.rows + 63) >> 6), np.uint64)
    return intersect_by(_intersect, words, limit, block, ranges, negated, live, ordered=ordered)


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
    words: np.ndarray,
    offsets: np.ndarray,
    positions: np.ndarray,
) -> int:
    """Answer the probe rows from number `row` on; return the number of the first one for which room may be short."""
    for probe in range(row, starts.shape[1]):
        used = offsets[probe]
        if positions.size - used < bounds[1]:
            return probe
        for dimension in range(starts.shape[0]):
            base, length = bounds[dimension], bounds[dimension + 1] - bounds[dimension]
            start = starts[dimension, probe]
            stop = max(start, stops[dimension, probe])
            if negated[dimension]:
                parts = ((0, start), (stop, length))
            else:
                parts = ((start, stop), (stop, stop))
            side = min(dimension, 1)
            words[side, :] = np.uint64(0)
            for part in parts:
                for rank in range(part[0], part[1]):
                    bit = np.uint64(orders[base + rank])
                    words[side, bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
            if dimension:
                for word in range(words.shape[1]):
                    words[0, word] &= words[1, word]
        for word in range(words.shape[1]):
            bits = words[0, word]
            position = origin + 64 * word
            while bits != np.uint64(0):
                if bits & np.uint64(1) and first[probe] <= position < end[probe]:
                    positions[used] = position
                    used += 1
                bits >>= np.uint64(1)
                position += 1
        offsets[probe + 1] = used
    return starts.shape[1]
