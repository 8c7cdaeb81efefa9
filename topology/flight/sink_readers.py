"""The readers that one handle has on the sinks of a topology in other processes, over one connection for each sink."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import pyarrow as pa

from topology.flight.client import FlightClient
from topology.flight.resuming import Lives, ResumingReading
from topology.graph.errors import StoppedError
from topology.handle.endpoint import Endpoint
from topology.handle.results import ExplainedReading, Reading

Explained = Callable[[], AbstractContextManager[None]]


class SinkReaders:
    """Reads and acknowledges results, and remembers what that has come to. Any thread may call it.

    explained: makes a context around calls, which explains their errors.
    lives:     of a durable topology; None: it has one.
    """

    def __init__(self, endpoint: Callable[[str], Endpoint], explained: Explained, lives: Lives | None = None) -> None:
        self._endpoint = endpoint
        self._explained = explained
        self._lives = lives
        self._clients: dict[str, FlightClient] = {}
        self._client_lives: dict[str, int] = {}
        self._ends: dict[str, int] = {}  # how many results a sink had in all, once a reader knows
        self._acknowledged: dict[str, int] = {}
        self._lock = threading.Lock()

    def read(self, sink: str, after: int | None, take_over: bool) -> Reading:
        """Begin to read a sink."""
        with self._explained():
            reading: Reading
            if self._lives is None:
                reading = self._begin(sink, after, take_over)
            else:
                reading = ResumingReading(partial(self._begin, sink), self._lives, sink, after, take_over)
            return _SinkReading(reading, self._explained, self, sink)

    def acknowledge(self, sink: str, number: int) -> None:
        """Acknowledge results of a sink, and wait until that is known there."""
        with self._explained():
            if self._lives is None:
                self._client(sink).acknowledge(number, sink)
            else:
                call = partial(self._acknowledge, sink, number)
                self._lives.repeat(call, f"acknowledging results of '{sink}'")
        self.note_acknowledged(sink, number)

    def close(self) -> None:
        """Let all readers leave, so that what they have acknowledged counts."""
        with self._lock:
            clients = list(self._clients.values())
        for client in clients:
            client.close()

    def abandon(self, error: Exception) -> None:
        """End all readers; those that have not reached the end raise `error`."""
        with self._lock:
            clients = list(self._clients.values())
        for client in clients:
            client.abandon(error)

    def has_ended(self, sink: str) -> bool:
        """Whether this handle has read a sink to its end and acknowledged everything: then nothing is missing."""
        with self._lock:
            end = self._ends.get(sink)
            return end is not None and self._acknowledged.get(sink, -1) + 1 >= end

    def note_acknowledged(self, sink: str, number: int) -> None:
        """Remember that results up to this number were acknowledged."""
        with self._lock:
            self._acknowledged[sink] = max(number, self._acknowledged.get(sink, -1))

    def note_end(self, sink: str, end: int) -> None:
        """Remember how many results a sink had in all."""
        with self._lock:
            self._ends[sink] = end

    def _begin(self, sink: str, after: int | None, take_over: bool) -> Reading:
        return self._client(sink).open_reader(sink, after, take_over)

    def _acknowledge(self, sink: str, number: int) -> None:
        self._client(sink).acknowledge(number, sink)

    def _client(self, sink: str) -> FlightClient:
        with self._lock:
            life = 0 if self._lives is None else self._lives.number  # before its endpoint, which may be newer
            endpoint = self._endpoint(sink)  # raises if the topology has ended, and after that all are abandoned
            if sink in self._clients and self._client_lives[sink] != life:
                self._clients.pop(sink).abandon(StoppedError("the topology has been started again"))
            if sink not in self._clients:
                self._clients[sink] = FlightClient(endpoint)
                self._client_lives[sink] = life
            return self._clients[sink]


class NothingMore(Reading):
    """The reading of a sink whose results have all been read and acknowledged."""

    finished = True

    def next(self, timeout: float | None = None) -> None:
        return None

    def acknowledge(self, number: int) -> None:
        """Do nothing: everything has been acknowledged."""

    def close(self) -> None:
        """Do nothing."""


class _SinkReading(ExplainedReading):
    """A reading that tells the readers of its handle how far it has come."""

    def __init__(self, reading: Reading, explained: Explained, readers: SinkReaders, sink: str) -> None:
        super().__init__(reading, explained)
        self._readers = readers
        self._sink = sink
        self._end = 0

    def next(self, timeout: float | None = None) -> tuple[int, pa.RecordBatch] | None:
        found = super().next(timeout)
        if found is not None:
            self._end = found[0] + found[1].num_rows
        elif self.finished:
            self._readers.note_end(self._sink, self._end)
        return found

    def acknowledge(self, number: int) -> None:
        super().acknowledge(number)
        self._readers.note_acknowledged(self._sink, number)
