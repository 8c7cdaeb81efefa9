"""The least value of a range of sorted rows, from the least of each chunk and of each power of two of chunks.

An example with chunks of two:

    values by rank                   7 3   5 9   4 4   8 6
    least of 1 chunk                  3     5     4     6
    least of 2 chunks from it on      3     4     4
    ranks [1, 7): 3 by itself, then the chunks 1 and 2 (least 4), then 8 by itself: 3
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from indexes import Live, frozen, kernel
from operators.aggregates.prefix_sums import Ranks
from operators.protocol.columns import Int64

CHUNK = 8
"""Ranks of a chunk: the ends of a range are compared one by one, and a table of so many fewer entries is held."""

NOWHERE = -1
_NO_ROW = np.iinfo(np.int32).max
_GREATEST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class RankedValues:
    """Values by rank; of equal ones the earliest row counts. Where there is none, value and row are the greatest.

    rows:  the row of each value in its block.
    table: for each level k and chunk c the rank of the least value in the chunks [c, c + 2^k).
    """

    values: Int64
    rows: np.ndarray
    table: np.ndarray

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes + self.rows.nbytes + self.table.nbytes)

    @classmethod
    def of(cls, values: Int64, rows: np.ndarray, valid: np.ndarray | None = None) -> RankedValues:
        """Build the table for the values and the rows of consecutive ranks. Cost: O(n)."""
        if valid is not None:
            values, rows = np.where(valid, values, _GREATEST), np.where(valid, rows, _NO_ROW)
        chunks = -(-len(values) // CHUNK)
        table = np.zeros((max(1, chunks.bit_length()), chunks), np.int32)
        values, rows = frozen(values), frozen(rows, np.int32)
        _build(values, rows, table)
        return cls(values, rows, frozen(table))

    def merged(self, other: RankedValues, source: np.ndarray, shift: int) -> RankedValues:
        """The values of two blocks in a new order; the rows of the second come `shift` rows later. Cost: O(n)."""
        later = np.where(other.rows == _NO_ROW, _NO_ROW, other.rows + np.int32(shift))
        values, rows = np.concatenate([self.values, other.values]), np.concatenate([self.rows, later])
        return RankedValues.of(values[source], rows[source])

    def improve(self, first: int, rows: int, met: Ranks, live: Live, best: Int64, places: Int64) -> None:
        """Let each probe row have the least value that it meets in a block of `rows` rows from position `first` on.

        best, places: the least value so far of each probe row, and its position; NOWHERE if there is none. Blocks come
        in the order of their positions.
        Cost: O(CHUNK) for a probe row that may meet all positions of the block, else O(ranks).
        """
        _improve(self.values, self.rows, self.table, first, rows, *met, live.start, live.end, best, places)


@kernel
def _build(values: Int64, rows: np.ndarray, table: np.ndarray) -> None:
    levels, chunks = table.shape
    for chunk in range(chunks):
        best = chunk * CHUNK
        for rank in range(best + 1, min(values.size, best + CHUNK)):
            if values[rank] < values[best] or (values[rank] == values[best] and rows[rank] < rows[best]):
                best = rank
        table[0, chunk] = best
    for level in range(1, levels):
        half = 1 << (level - 1)
        for chunk in range(chunks - 2 * half + 1):
            one, other = table[level - 1, chunk], table[level - 1, chunk + half]
            if values[other] < values[one] or (values[other] == values[one] and rows[other] < rows[one]):
                one = other
            table[level, chunk] = one


@kernel
def _improve(
    values: Int64,
    rows: np.ndarray,
    table: np.ndarray,
    first: int,
    size: int,
    begins: np.ndarray,
    ends: np.ndarray,
    starts: Int64,
    stops: Int64,
    best: Int64,
    places: Int64,
) -> None:
    for probe in range(begins.size):
        begin, end = begins[probe], ends[probe]
        start, stop = starts[probe] - first, stops[probe] - first
        if begin >= end or start >= size or stop <= 0:
            continue
        least, row = _GREATEST, _NO_ROW
        if start > 0 or stop < size:
            for rank in range(begin, end):
                better = values[rank] < least or (values[rank] == least and rows[rank] < row)
                if better and start <= rows[rank] < stop:
                    least, row = values[rank], rows[rank]
        else:
            lower, upper = (begin + CHUNK - 1) // CHUNK, end // CHUNK
            middle = end
            if lower < upper:
                level = 0
                while 2 << level <= upper - lower:
                    level += 1
                for chunk in (lower, upper - (1 << level)):
                    rank = table[level, chunk]
                    if values[rank] < least or (values[rank] == least and rows[rank] < row):
                        least, row = values[rank], rows[rank]
                middle = lower * CHUNK
                for rank in range(upper * CHUNK, end):
                    if values[rank] < least or (values[rank] == least and rows[rank] < row):
                        least, row = values[rank], rows[rank]
            for rank in range(begin, middle):
                if values[rank] < least or (values[rank] == least and rows[rank] < row):
                    least, row = values[rank], rows[rank]
        if row != _NO_ROW and (places[probe] < 0 or least < best[probe]):
            best[probe] = least
            places[probe] = first + row
