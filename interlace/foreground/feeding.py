"""Sends the rows of files to a running topology, in a thread of its own, while the program reads the results.

The stream whose last row is the earliest sends next, so that few rows wait for those of the other stream.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from topology import Handle, InterlaceError, StoppedError, event_times

JOIN_SECONDS = 0.5
"""How long the end waits for the thread: one that waits for standard input is left behind."""


class Feeding:
    """A context manager that feeds while its body reads, and stops the topology if the body fails.

    feeds:      the batches of each stream, in order.
    event_time: the event-time column of each stream; None: the number of the row.
    sent:       called with the number of rows of each batch, in the feeding thread.
    is_wanted:  False once the reader has had enough: then nothing about the rest matters.
    """

    def __init__(
        self,
        running: Handle,
        feeds: Mapping[str, Iterator[pa.RecordBatch]],
        event_time: Mapping[str, str | None],
        sent: Callable[[int], None],
    ) -> None:
        self._running = running
        self._feeds = feeds
        self._event_time = event_time
        self._sent = sent
        self.is_wanted = True
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="feeding", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            self._running.stop()  # wakes the thread if it waits for room
        self._thread.join(None if error is None and self.is_wanted else JOIN_SECONDS)
        if self._error is not None and self.is_wanted and (error is None or isinstance(error, StoppedError)):
            raise self._error from None

    def _run(self) -> None:
        try:
            self._send_all()
        except StoppedError:
            pass  # the reader knows why
        except BaseException as error:
            self._error = error
            self._stop()

    def _send_all(self) -> None:
        turn: list[tuple[Any, int, str]] = [(float("-inf"), number, name) for number, name in enumerate(self._feeds)]
        rows = dict.fromkeys(self._feeds, 0)
        while turn:
            latest, number, stream = heapq.heappop(turn)
            batch = next(self._feeds[stream], None)
            if batch is None:
                self._running.finish(stream)
                continue
            self._running.send(stream, batch)
            self._sent(batch.num_rows)
            rows[stream] += batch.num_rows
            heapq.heappush(turn, (self._last_time(stream, batch, rows[stream], latest), number, stream))

    def _last_time(self, stream: str, batch: pa.RecordBatch, rows: int, latest: Any) -> Any:
        column = self._event_time[stream]
        if column is None:
            return rows
        times, valid = event_times(batch.column(column))
        times = times if valid is None else times[valid]
        return max(latest, times.max().item()) if len(times) else latest

    def _stop(self) -> None:
        """Wake the reader, who then gets the error from `__exit__`."""
        try:
            self._running.stop()
        except InterlaceError:
            pass
