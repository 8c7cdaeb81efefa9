"""The calls of one client. Each is an exchange, because Arrow can cancel nothing else while it waits.

A get waits for its first rows, and an action for its answer, inside a function that returns nothing to cancel before.
An exchange returns its two ends as soon as there is a connection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from topology.flight.calls_under_way import calls_under_way
from topology.flight.errors import raised_by
from topology.flight.operations import descriptor
from topology.graph.errors import InterlaceError


class Exchanges:
    """Makes the exchanges of a client with its peer; all of them can be cancelled at once, by any thread."""

    def __init__(self, client: flight.FlightClient, peer: str) -> None:
        self.peer = peer
        self._client = client
        self._open: set[Exchange] = set()
        self._error: Exception | None = None
        self._lock = threading.Lock()

    def begin(self, options: Any, *path: str) -> Exchange:
        """Begin the exchange that names an operation and its subject; waits for a connection."""
        self._require_open()
        with self.calling():
            writer, reader = self._client.do_exchange(descriptor(*path), options)
        made = Exchange(writer, reader, self._forget)
        with self._lock:
            self._open.add(made)
        try:
            self._require_open()
        except Exception:
            made.close()
            raise
        return made

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Use it around whatever may wait for the peer: raises the peer's error, or why all was cancelled."""
        try:
            with calls_under_way.one(), raised_by(self.peer):
                yield
        except InterlaceError:
            self._require_open()
            raise

    def cancel(self, error: Exception) -> None:
        """End all exchanges; whoever waits, and later ones, raise `error`."""
        with self._lock:
            self._error = self._error or error
            under_way = list(self._open)
        for exchange in under_way:
            exchange.cancel()

    def _require_open(self) -> None:
        with self._lock:
            if self._error is not None:
                raise self._error from None

    def _forget(self, exchange: Exchange) -> None:
        with self._lock:
            self._open.discard(exchange)


class Exchange:
    """One call. One thread writes and one reads, each inside `Exchanges.calling`; any thread may cancel."""

    def __init__(self, writer: Any, reader: Any, on_close: Callable[[Exchange], None]) -> None:
        self.writer = writer
        self.reader = reader
        self._on_close = on_close

    def cancel(self) -> None:
        """End the call: whoever is inside it comes back with an error."""
        self.reader.cancel()

    def close(self) -> None:
        """Give up what is under way and free what the call holds; nobody uses it any more."""
        self._on_close(self)
        self.cancel()
        try:
            with calls_under_way.one():
                self.writer.close()
        except (flight.FlightError, pa.ArrowException, OSError):
            pass  # the reason has been reported, or does not matter any more
