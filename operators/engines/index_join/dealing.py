"""From the element that stores each row and the elements that it asks to the rows of each element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from indexes import frozen, kernel
from operators.engines.index_join.side_map import Int32
from operators.protocol.columns import Int64
from operators.protocol.divided_rows import PROBING, STORED

Roles = npt.NDArray[np.int8]


def dealt_rows(stored: Int32, asked: Sequence[tuple[Int32, Int32]], elements: int) -> list[tuple[Int64, Roles]]:
    """For each element the numbers of its rows, ascending, and what they do there. A row comes to an element once.

    stored: the element that stores each row, or a negative number.
    asked:  for each map, the first and the last element that each row asks; number `elements` is 0 again.
    Cost: O(rows * maps + rows sent).
    """
    first, last = (frozen(np.stack(ends)) for ends in zip(*asked, strict=True))
    counts = np.zeros(elements, np.int64)
    _count(frozen(stored), first, last, counts)
    ends = np.cumsum(counts)
    begins = ends - counts
    rows, roles = np.empty(int(ends[-1]), np.int64), np.empty(int(ends[-1]), np.int8)
    _deal(frozen(stored), first, last, begins.copy(), rows, roles)
    return [(rows[begin:end], roles[begin:end]) for begin, end in zip(begins, ends, strict=True)]


def sent_to(stored: Int32, asked: Sequence[tuple[Int32, Int32]], elements: int) -> Int64:
    """How many rows each element gets. Cost: O(rows * maps + rows sent)."""
    first, last = (frozen(np.stack(ends)) for ends in zip(*asked, strict=True))
    counts = np.zeros(elements, np.int64)
    _count(frozen(stored), first, last, counts)
    return counts


@kernel
def _count(stored: Int32, first: Int32, last: Int32, counts: Int64) -> None:
    elements = counts.size
    marked = np.full(elements, -1)
    for row in range(stored.size):
        for each in range(first.shape[0]):
            for number in range(first[each, row], last[each, row] + 1):
                element = number if number < elements else number - elements
                if marked[element] != row:
                    marked[element] = row
                    counts[element] += 1
        element = stored[row]
        if element >= 0 and marked[element] != row:
            counts[element] += 1


@kernel
def _deal(stored: Int32, first: Int32, last: Int32, cursor: Int64, rows: Int64, roles: Roles) -> None:
    elements = cursor.size
    marked = np.full(elements, -1)
    for row in range(stored.size):
        for each in range(first.shape[0]):
            for number in range(first[each, row], last[each, row] + 1):
                element = number if number < elements else number - elements
                if marked[element] != row:
                    marked[element] = row
                    rows[cursor[element]] = row
                    roles[cursor[element]] = PROBING
                    cursor[element] += 1
        element = stored[row]
        if element >= 0:
            if marked[element] == row:
                roles[cursor[element] - 1] = PROBING + STORED
            else:
                rows[cursor[element]] = row
                roles[cursor[element]] = STORED
                cursor[element] += 1
