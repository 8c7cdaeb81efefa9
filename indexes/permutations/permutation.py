"""The permutation array between two dimensions of a block, and the envelope that narrows ranges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from indexes.kernels.columns import frozen
from indexes.kernels.compiled import kernel
from indexes.permutations.sorted_run import SortedRun

NOTHING = frozen(np.empty(0, np.int32))


def ranks_of(run: SortedRun) -> np.ndarray:
    """The rank of each row of the block in `run`, -1 for a row without a valid key. Cost: O(n)."""
    ranks = np.full(run.rows, -1, np.int32)
    ranks[run.order] = np.arange(len(run), dtype=np.int32)
    return frozen(ranks)


@dataclass(frozen=True)
class Permutation:
    """`partner[j]` is the rank, in the other dimension, of the row with rank j in this one; -1 if it has none.

    SPO-Join's permutation array (section 3.3, algorithm 2). Its inverse is the Permutation with the two dimensions
    swapped.

        rows            r0 r1 r2 r3
        power            7  2  9  4     sorted: 2 4 7 9   order   1 3 0 2
        cool             6  1  3  5     ranks by row      3 0 1 2
        partner of the power ranks:     0 2 3 1
        highest_until                   0 2 3 3
    """

    order: np.ndarray
    partner: np.ndarray

    @classmethod
    def between(cls, run: SortedRun, other_ranks: np.ndarray) -> Permutation:
        """Cost: O(n)."""
        return cls(run.order, frozen(other_ranks[run.order]))

    @property
    def nbytes(self) -> int:
        return int(self.partner.nbytes)


@dataclass(frozen=True)
class Envelope:
    """How far the partners of a rank prefix or suffix reach: four running extremes.

    Rows with ranks [0, b) in this dimension have partners in [lowest_until[b - 1], highest_until[b - 1]]; rows with
    ranks [a, n) have partners in [lowest_from[a], highest_from[a]]. So a range here narrows the range there, without
    losing a match, by looking up four numbers. PO-Join does not have this: it scans its bit array to the open end of
    the range. Where the two dimensions are correlated, as power and cooling are, a range of 50,000 ranks narrows to a
    handful. An array that cannot help any probe row stays empty.
    """

    lowest_until: np.ndarray
    highest_until: np.ndarray
    lowest_from: np.ndarray
    highest_from: np.ndarray

    @classmethod
    def of(cls, partner: np.ndarray, until: bool, since: bool) -> Envelope:
        """`until`: for ranges that end early; `since`: for ranges that start late. Cost: O(n)."""
        # -1, no partner, must not count as a low rank; as a high one it never does.
        present = partner
        if len(partner) and partner.min() < 0:
            present = np.where(partner < 0, np.int32(2**31 - 1), partner)
        lowest_until = highest_until = lowest_from = highest_from = NOTHING
        if until:
            lowest_until = frozen(np.minimum.accumulate(present))
            highest_until = frozen(np.maximum.accumulate(partner))
        if since:
            lowest_from = frozen(np.minimum.accumulate(present[::-1])[::-1])
            highest_from = frozen(np.maximum.accumulate(partner[::-1])[::-1])
        return cls(lowest_until, highest_until, lowest_from, highest_from)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The four extremes, in the form that kernels take."""
        return self.lowest_until, self.highest_until, self.lowest_from, self.highest_from

    @property
    def nbytes(self) -> int:
        return sum(int(array.nbytes) for array in self.arrays)

    def narrow(
        self, ranges: tuple[np.ndarray, np.ndarray], partner_ranges: tuple[np.ndarray, np.ndarray]
    ) -> tuple[tuple[np.ndarray, np.ndarray], int]:
        """The part of `partner_ranges` in which rows of `ranges` can lie, and its total width.

        Cost: O(probes).
        """
        a = np.empty(len(ranges[0]), np.int32)
        b = np.empty(len(ranges[0]), np.int32)
        width = _narrow(*self.arrays, *ranges, *partner_ranges, a, b)
        return (frozen(a), frozen(b)), width


@kernel
def _narrow(
    lowest_until: np.ndarray,
    highest_until: np.ndarray,
    lowest_from: np.ndarray,
    highest_from: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    partner_a: np.ndarray,
    partner_b: np.ndarray,
    narrow_a: np.ndarray,
    narrow_b: np.ndarray,
) -> int:
    until = lowest_until.size > 0
    since = lowest_from.size > 0
    total = 0
    for i in range(a.size):
        low = partner_a[i]
        high = partner_b[i]
        if a[i] >= b[i]:
            high = low
        else:
            if until:
                rank = np.uint64(b[i] - 1)
                low = max(low, lowest_until[rank])
                high = min(high, highest_until[rank] + 1)
            if since:
                rank = np.uint64(a[i])
                low = max(low, lowest_from[rank])
                high = min(high, highest_from[rank] + 1)
        if high < low:
            high = low
        narrow_a[i] = low
        narrow_b[i] = high
        total += high - low
    return total
