"""How the clients of a durable topology go on when its processes have been started again.

Each start of the processes is a life, with endpoints of its own. A call that was under way when a life ended is made
again in the next one, which changes nothing if it had come through: rows have offsets, results have numbers, and all
other calls may be repeated. What was sent and not taken is held by the client, within the bounds of its feed, and sent
again first. A reader goes on behind the last result that it gave out.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

import pyarrow as pa

from topology.flight.client import FlightClient
from topology.flight.feed import Untaken
from topology.graph.errors import FencedError, InterlaceError, StoppedError
from topology.handle.results import Reading

T = TypeVar("T")

RETRY_SECONDS = 1.0
"""After how long a call is made again although the same life seems to go on."""

LOOK_UP_SECONDS = 0.2
WARNING_SECONDS = 10.0

log = logging.getLogger("interlace")


def is_lost(error: BaseException) -> bool:
    """Whether a call failed because its peer has gone, not because that refused it; of unknown errors, that it may."""
    return isinstance(error, StoppedError | FencedError) or type(error) is InterlaceError


class Lives:
    """Knows which life of a topology runs; whoever follows the topology calls `ended` and `began`.

    check: raises an error if there will be no other life, or this client has left.
    """

    def __init__(self, name: str, number: int, check: Callable[[], None]) -> None:
        self.number = number
        self._name = name
        self._check = check
        self._recovering = False
        self._changed = threading.Condition()

    def ended(self) -> None:
        """The processes are being started again."""
        with self._changed:
            self._recovering = True

    def began(self, number: int) -> None:
        """A life has begun, and its endpoints are known."""
        with self._changed:
            self._recovering = False
            self.number = number
            self._changed.notify_all()

    def repeat(self, call: Callable[[], T], whom: str) -> T:
        """Make a call until it is answered or refused."""
        while True:
            life = self.number
            try:
                return call()
            except InterlaceError as error:
                self.wait(error, life, whom)

    def wait(self, error: InterlaceError, life: int, whom: str, limit: float | None = None) -> bool:
        """Wait for the life after the one in which a call failed; False: the limit came first.

        Raises the error if the peer has refused the call, or if it is of no known kind and the same life goes on.
        """
        if not is_lost(error):
            raise error
        began = time.monotonic()
        warn_at = began
        while True:
            self._check()
            now = time.monotonic()
            with self._changed:
                if self.number > life:
                    return True
                if not self._recovering and now > began + RETRY_SECONDS:
                    if type(error) is InterlaceError:
                        raise error
                    return True
                if limit is not None and now >= limit:
                    return False
                if self._recovering and now >= warn_at:
                    warn_at = now + WARNING_SECONDS
                    log.warning("%s waits until topology '%s' runs again (%s)", whom, self._name, error)
                self._changed.wait(LOOK_UP_SECONDS if limit is None else min(LOOK_UP_SECONDS, limit - now))


class ResumingClient:
    """Calls one input of a durable topology, in whichever life; as `FlightClient`, for one stream.

    connect: makes a client of the life that runs.
    """

    def __init__(self, stream: str, connect: Callable[[], FlightClient], lives: Lives) -> None:
        self._stream = stream
        self._connect = connect
        self._lives = lives
        self._client: FlightClient | None = None
        self._latest: FlightClient | None = None  # also while it sends again, so that it can be abandoned
        self._untaken: list[Untaken] = []
        self._connecting = threading.Lock()
        self._sending = threading.Lock()

    def send(self, stream: str, source: str, batches: Iterable[pa.RecordBatch], offset: int | None = None) -> int:
        """As `FlightClient.send`. All rows have offsets, so that they can be sent again."""
        rows = 0
        with self._sending:
            first = self.sent_offset(stream, source) if offset is None else offset
            for batch in batches:
                self._send(source, batch, first + rows)
                rows += batch.num_rows
        return rows

    def sent_offset(self, stream: str, source: str) -> int:
        """As `FlightClient.sent_offset`."""
        return self._do(lambda client: client.sent_offset(stream, source))

    def next_offset(self, stream: str, source: str) -> int:
        """As `FlightClient.next_offset`."""
        return self._do(lambda client: client.next_offset(stream, source))

    def flush(self, timeout: float | None = None) -> None:
        """As `FlightClient.flush`."""
        limit = None if timeout is None else time.monotonic() + timeout
        self._do(lambda client: client.flush(None if limit is None else max(0.0, limit - time.monotonic())), limit)

    def open(self, stream: str, *sources: str, behind: str | None = None) -> None:
        """As `FlightClient.open`."""
        self._do(lambda client: client.open(stream, *sources, behind=behind))

    def pin(self, stream: str, schema: pa.Schema) -> None:
        """As `FlightClient.pin`."""
        self._do(lambda client: client.pin(stream, schema))

    def schema(self, stream: str) -> pa.Schema | None:
        """As `FlightClient.schema`."""
        return self._do(lambda client: client.schema(stream))

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        """As `FlightClient.commit`."""
        self._do(lambda client: client.commit(stream, source, attempt, rows))

    def discard(self, stream: str, attempts: str) -> None:
        """As `FlightClient.discard`."""
        self._do(lambda client: client.discard(stream, attempts))

    def finish(self, stream: str, source: str | None = None) -> None:
        """As `FlightClient.finish`."""
        self._do(lambda client: client.finish(stream, source))

    def abandon(self, error: Exception) -> None:
        """As `FlightClient.abandon`; whoever waits for another life learns from `Lives.check` that there is none."""
        client = self._latest
        if client is not None:
            client.abandon(error)

    def _send(self, source: str, batch: pa.RecordBatch, offset: int) -> None:
        self._do(lambda client: client.send(self._stream, source, batch, offset))

    def _do(self, call: Callable[[FlightClient], T], limit: float | None = None) -> T:
        while True:
            life, client = self._lives.number, None
            try:
                client = self._connected()
                return call(client)
            except InterlaceError as error:
                if is_lost(error):
                    self._drop(client)
                if not self._lives.wait(error, life, f"a call to '{self._stream}'", limit):
                    raise TimeoutError(f"'{self._stream}' has not taken all rows yet: {error}") from error
            except TimeoutError:
                raise
            except BaseException:  # the call was interrupted, and what it had under way is sent again by the next
                self._drop(client)
                raise

    def _connected(self) -> FlightClient:
        """The client of this life. Before anything else it sends again what the last life has not taken."""
        with self._connecting:
            if self._client is None:
                self._latest = client = self._connect()
                try:
                    for untaken in self._untaken:
                        client.send(self._stream, untaken.source, untaken.rows, untaken.offset)
                except BaseException as error:
                    client.abandon(StoppedError("the connection is closed"))
                    if isinstance(error, InterlaceError) and not is_lost(error):
                        self._untaken = []  # refused, as they would have been the first time
                    raise
                self._client, self._untaken = client, []
            return self._client

    def _drop(self, client: FlightClient | None) -> None:
        """Hold what a broken connection has not delivered."""
        with self._connecting:
            if client is not None and self._client is client:
                self._client = None
                client.abandon(StoppedError("the connection is closed"))
                self._untaken = client.untaken


class ResumingReading(Reading):
    """Reads one sink of a durable topology, in whichever life.

    read: begins to read in the life that runs; its arguments are the number to read after, and whether to take over.
    """

    def __init__(
        self, read: Callable[[int | None, bool], Reading], lives: Lives, sink: str, after: int | None, take_over: bool
    ) -> None:
        self._read = read
        self._lives = lives
        self._whom = f"reading '{sink}'"
        self._after = after
        self._acknowledged: int | None = None
        self._closed = False
        self._life = lives.number
        self._reading = lives.repeat(lambda: self._begin(take_over), self._whom)

    def next(self, timeout: float | None = None) -> tuple[int, pa.RecordBatch] | None:
        limit = None if timeout is None else time.monotonic() + timeout
        for left in _remaining(timeout, limit):
            try:
                found = self._reading.next(left)
            except InterlaceError as error:
                if self._closed:
                    raise
                if not self._lives.wait(error, self._life, self._whom, limit):
                    return None
                self._go_on()
                continue
            self.finished = self._reading.finished
            if found is not None:
                self._after = max(found[0] + found[1].num_rows - 1, -1)
            return found
        raise AssertionError("it tries until there is an answer")

    def acknowledge(self, number: int) -> None:
        self._acknowledged = number
        self._reading.acknowledge(number)

    def close(self) -> None:
        self._closed = True
        self._reading.close()

    def _go_on(self) -> None:
        """Read on in another life, behind what was given out."""
        with suppress(InterlaceError):
            self._reading.close()
        self._reading = self._lives.repeat(lambda: self._begin(False), self._whom)
        if self._acknowledged is not None:
            self._reading.acknowledge(self._acknowledged)
        if self._closed:
            self._reading.close()

    def _begin(self, take_over: bool) -> Reading:
        self._life = self._lives.number
        return self._read(self._after, take_over)


def _remaining(timeout: float | None, limit: float | None) -> Iterator[float | None]:
    """What is left of a timeout, again and again: all of it the first time."""
    yield timeout
    while True:
        yield None if limit is None else max(0.0, limit - time.monotonic())
