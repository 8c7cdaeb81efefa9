"""The ways to match two dimensions of a block, and the expected cost of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from indexes.permutations.bit_kernels import survey, walk_length
from indexes.permutations.permutation_search import Ranges, walk_sequence

SCAN_COST, STEP_COST, WORD_COST, FOUND_COST, TURN_COST = 0.8, 2.0, 2.0, 4.5, 100.0
"""Nanoseconds per rank scanned, per rank that a walk moves over, per word of bits it reads, per match it finds and
gathers, and per probe row. Only their ratios matter."""

COPY_COST, LOOK_COST = 1.2, 0.3
"""Nanoseconds per match that a scan or a tree writes; per row or rank that is only counted."""

NEAR_COST, FAR_COST, NEAR_ROWS = 40.0, 300.0, 1 << 18
"""Nanoseconds for a probe row to reach its ranks, in a block of up to NEAR_ROWS rows, which caches hold, and beyond."""


class Strategy(Enum):
    """How to match the two indexed dimensions, the narrowest first."""

    SCAN = "scan"  # scan the first one's permutation, checking the second's range
    SCAN_INVERSE = "scan inverse"  # scan the second one's permutation, checking the first's range
    WALK = "walk"  # bit array over the second, its range following the first: IE-Join
    WALK_INVERSE = "walk inverse"  # bit array over the first, its range following the second
    TREE = "tree"  # copy slices from a merge-sort tree over both


def reach(rows: int) -> float:
    """Nanoseconds for a probe row to reach its ranks in a block of so many rows. Cost: O(1)."""
    return NEAR_COST if rows <= NEAR_ROWS else FAR_COST


def cheapest_without_tree(
    first: int, second: int, sides: Sequence[Ranges], width: Mapping[int, int], found: int, reached: float
) -> tuple[Strategy, float]:
    """The cheapest scan or walk and its cost, given the narrowed widths, the likely matches and the result of `reach`.

    Cost: O(probes log probes).
    """
    probes = len(sides[first][0])
    besides = COPY_COST * found + reached * probes
    costs = {
        Strategy.SCAN: SCAN_COST * width[first] + besides,
        Strategy.SCAN_INVERSE: SCAN_COST * width[second] + besides,
    }
    for strategy, along, across in ((Strategy.WALK, first, second), (Strategy.WALK_INVERSE, second, first)):
        words = min(width[across] // 64, found)
        cost = TURN_COST * probes + WORD_COST * words + FOUND_COST * found
        # Any walk spans all ranges once; the probe rows are sorted only if that alone is not too expensive.
        _, least_a, greatest_a, least_b, greatest_b = survey(*sides[along])
        span = greatest_a - least_a + greatest_b - least_b
        if cost + STEP_COST * span < min(costs.values()):
            costs[strategy] = cost + STEP_COST * walk_length(walk_sequence(sides[along]), *sides[along])
    cheapest = min(costs, key=lambda strategy: costs[strategy])
    return cheapest, costs[cheapest]
