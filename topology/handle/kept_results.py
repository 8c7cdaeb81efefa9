"""Results of one sink, numbered from 0, that are kept until somebody acknowledges them.

Worked by hand: batches of 3, 2 and 4 rows have the numbers 0-2, 3-4 and 5-8. After `acknowledge(3)` the first batch is
gone. The second is still here, because row 4 is not acknowledged; who reads from the start gets a slice with that row.
Whole batches are dropped and slices share memory, so nothing is copied.

No threads, no waiting: `ResultsQueue` adds these.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import pyarrow as pa

from topology.graph.messages import rows_bytes
from topology.handle.result_shelf import FILE_BYTES, ResultShelf


@dataclass(frozen=True, slots=True)
class _Kept:
    """A batch and the number of its first row."""

    first: int
    rows: pa.RecordBatch
    size: int

    @property
    def end(self) -> int:
        return self.first + self.rows.num_rows


@dataclass(frozen=True, slots=True)
class Place:
    """Where a reader stands: the row that it gets next, and the batch to look for it.

    A batch without rows has no number of its own, so the number alone would not tell whether it was given.
    """

    number: int
    batch: int


class KeptResults:
    """Batches from the first row that nobody has acknowledged to the last that has come.

    acknowledged: the last number that was acknowledged; -1: none.
    end:          the number of the next row to come.
    nbytes:       of all batches that are kept in memory.
    schema:       that of the last batch that has come; None: none has.
    """

    def __init__(self) -> None:
        self.acknowledged = -1
        self.end = 0
        self.nbytes = 0
        self.schema: pa.Schema | None = None
        self._batches: deque[_Kept] = deque()
        self._dropped = 0  # batches before the first that is kept
        self._shelved = 0  # batches before the first that is in memory

    def append(self, rows: pa.RecordBatch) -> None:
        """Keep the next rows."""
        self.schema = rows.schema
        kept = _Kept(self.end, rows, rows_bytes(rows))
        self.end = kept.end
        if rows.num_rows and kept.end <= self.acknowledged + 1:
            return
        self._batches.append(kept)
        self.nbytes += kept.size

    def resume(self, number: int, acknowledged: int) -> None:
        """Number the next row `number`; rows up to `acknowledged` are dropped as they come. Only while it is empty."""
        self.end = number
        self.acknowledged = acknowledged

    def start(self) -> Place:
        """Where a reader begins that asks for all that is not acknowledged."""
        return Place(self.acknowledged + 1, self._dropped)

    def place_after(self, number: int) -> Place:
        """Where a reader begins whose last row had this number; it is at least `acknowledged` and below `end`."""
        skipped = sum(kept.end <= number + 1 for kept in self._batches)
        return Place(number + 1, self._dropped + skipped)

    def next(self, place: Place) -> tuple[int, pa.RecordBatch, Place] | None:
        """Return the number of the first row at `place`, the rows, and the place behind them; None: none has come.

        Rows that were acknowledged meanwhile are skipped.
        """
        batch = max(place.batch, self._dropped)
        while batch - self._dropped < len(self._batches):
            kept = self._batches[batch - self._dropped]
            if kept.end > place.number or not kept.rows.num_rows:
                break
            batch += 1  # a reader may begin after rows that come again
        else:
            return None
        number = max(place.number, self.acknowledged + 1, kept.first)
        rows = kept.rows if number == kept.first else kept.rows.slice(number - kept.first)
        return number, rows, Place(kept.end, batch + 1)

    def bytes_before(self, place: Place) -> int:
        """The size of the batch right before a place; 0 if it is gone."""
        index = place.batch - 1 - self._dropped
        return self._batches[index].size if 0 <= index < len(self._batches) else 0

    def acknowledge(self, number: int) -> None:
        """Forget all rows up to and including this one; a number below the last that was acknowledged changes nothing.

        Batches without rows go with the rows before them.
        """
        self.acknowledged = max(self.acknowledged, number)
        while self._batches and self._batches[0].end <= self.acknowledged + 1:
            self.nbytes -= self._batches.popleft().size
            self._dropped += 1

    def shelve(self, shelf: ResultShelf) -> None:
        """Move the batches that are in memory to a shelf, if they are worth a file."""
        if self.nbytes < FILE_BYTES:
            return
        first = max(self._shelved, self._dropped) - self._dropped
        while first < len(self._batches):
            schema = self._batches[first].rows.schema
            end = first + 1
            while end < len(self._batches) and self._batches[end].rows.schema.equals(schema, check_metadata=True):
                end += 1
            mapped = shelf.put([self._batches[index].rows for index in range(first, end)])
            for index, rows in zip(range(first, end), mapped, strict=True):
                self._batches[index] = replace(self._batches[index], rows=rows, size=0)
            first = end
        self._shelved = self._dropped + len(self._batches)
        self.nbytes = 0

    def clear(self) -> None:
        """Drop all rows; numbers stay as they are."""
        self._dropped += len(self._batches)
        self._batches.clear()
        self.nbytes = 0
