"""A place outside the topology where results are stored."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa


class ResultStore(ABC):
    """Stores the results of one sink, in the order of their numbers.

    Numbers make it exact: with a state, the same number is the same row after any failure. So a store need only know
    how far it is, and never take a number twice. `deliver` calls both methods, one at a time.
    """

    @abstractmethod
    def next_number(self) -> int:
        """Return the number of the first row that is not stored; called once, before any row.

        After a failure this is what the store itself still has, and not what somebody has been told.
        """

    @abstractmethod
    def store(self, first: int, rows: pa.RecordBatch) -> None:
        """Store the rows from number `first` on, which is the next one; when this returns, they survive.

        A process that has been replaced may call it, too, and late. So rows may come that are there already: they are
        the same rows, and change nothing.
        """

    def finish(self) -> None:
        """Note that no more rows will come; called again after a failure. Does nothing by default."""
        return
