"""What `results()` returns: an iterator over the rows of a sink, on top of any way to read them.

A plain loop acknowledges by going on: asking for the next batch says that the one before has been dealt with, and so
does reaching the end. A loop that breaks off, or whose body raises an error, has not asked for the next batch, and an
iterator cannot tell one from the other. So the batch in its hands is given again to the next reader: nothing is lost,
at the price that a loop that had dealt with its last batch before it broke off sees that batch twice. Who wants neither
uses numbers: with `numbered=True` or `after=` nothing is acknowledged unless the program says so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Generic, Self, TypeVar

import pyarrow as pa

Item = TypeVar("Item")


class Reading(ABC):
    """One reader of a sink, in this process or at the other end of a connection.

    finished: whether it has reached the end of all results.
    """

    finished: bool = False

    @abstractmethod
    def next(self, timeout: float | None = None) -> tuple[int, pa.RecordBatch] | None:
        """Return the next rows and the number of the first; None if `timeout` has passed, or it is finished or closed.

        Raises `TakenOverError` if another reader has taken over, `StoppedError` if there is no end to come.
        """

    @abstractmethod
    def acknowledge(self, number: int) -> None:
        """Say that this reader has dealt with all rows up to this one; of no effect once another has taken over."""

    @abstractmethod
    def close(self) -> None:
        """Leave. What was not acknowledged is given to the next reader; harmless when repeated."""


class Results(Iterator[Item], Generic[Item]):
    """Iterates over the rows of a sink. `close()` leaves; so does the end of a `for` loop, however it ends."""

    def __init__(
        self,
        reading: Reading,
        timeout: float | None,
        shown: Callable[[int, pa.RecordBatch], Item],
        acknowledges: bool,
        on_timeout: Callable[[], None] | None = None,
    ) -> None:
        self._reading = reading
        self._timeout = timeout
        self._shown = shown
        self._acknowledges = acknowledges
        self._on_timeout = on_timeout
        self._last: int | None = None
        self._left = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        if self._left:
            raise StopIteration
        try:
            if self._acknowledges and self._last is not None:
                self._reading.acknowledge(self._last)
            found = self._reading.next(self._timeout)
        except BaseException:
            self.close()
            raise
        if found is None:
            timed_out = not self._reading.finished and not self._left
            self.close()
            if timed_out and self._last is None and self._on_timeout is not None:
                self._on_timeout()
            raise StopIteration
        first, rows = found
        self._last = first + rows.num_rows - 1
        return self._shown(first, rows)

    @property
    def finished(self) -> bool:
        """Whether all results have been given out, and no more will come."""
        return self._reading.finished

    def close(self) -> None:
        """Leave; harmless when repeated. Any thread may call it, also while another waits for rows."""
        self._left = True
        self._reading.close()

    def __del__(self) -> None:
        with suppress(Exception):  # the interpreter may be ending
            self.close()


def plain_results(
    reading: Reading, timeout: float | None, acknowledges: bool, on_timeout: Callable[[], None] | None = None
) -> Results[pa.RecordBatch]:
    """Iterate over batches; `on_timeout` is called if there are none within the timeout."""
    return Results(reading, timeout, lambda first, rows: rows, acknowledges, on_timeout)


def numbered_results(
    reading: Reading, timeout: float | None, on_timeout: Callable[[], None] | None = None
) -> Results[tuple[int, pa.RecordBatch]]:
    """Iterate over batches, each with the number of its first row; `on_timeout` as for `plain_results`."""
    return Results(reading, timeout, lambda first, rows: (first, rows), acknowledges=False, on_timeout=on_timeout)


class ExplainedReading(Reading):
    """A reading whose errors are explained by the topology: `explained` makes a context around each wait."""

    def __init__(self, reading: Reading, explained: Callable[[], AbstractContextManager[None]]) -> None:
        self._reading = reading
        self._explained = explained

    def next(self, timeout: float | None = None) -> tuple[int, pa.RecordBatch] | None:
        with self._explained():
            found = self._reading.next(timeout)
        self.finished = self._reading.finished
        return found

    def acknowledge(self, number: int) -> None:
        self._reading.acknowledge(number)

    def close(self) -> None:
        self._reading.close()
