"""The producer's end of an edge to a task in another process: messages go to the consumer's inbox over Flight.

A task pushes messages into a queue. A thread of the edge packs what waits there, as a rule one step, into one frame and
writes it to a Flight stream, so no task waits for the network. The consumer acknowledges on the same stream what
its task has taken from the inbox. There is room while the messages that it has not taken are few in bytes and in
steps. So a slow consumer makes its producers wait; their backlogs grow, and with them their steps.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from topology.flight.auth import call_options
from topology.flight.connection import connect
from topology.flight.edge_receiver import ACKNOWLEDGEMENT, OPERATION
from topology.flight.errors import raised_by
from topology.flight.port import descriptor
from topology.flight.wire import FrameEncoder
from topology.graph.errors import ConnectionLostError, InterlaceError, StoppedError
from topology.graph.graph import TaskName
from topology.graph.messages import Batch, End, Message, Punctuation, message_bytes
from topology.handle.endpoint import Endpoint

STEPS_UNDER_WAY = 3
"""Steps that a consumer may have before it has taken the first of them."""

FRAME_BYTES = 4 * 1024 * 1024
"""A frame takes no further message beyond this size."""

REASON_SECONDS = 5.0
"""How long a failed write waits for the reason, which comes on the reading side of the stream."""


class FlightEdge:
    """An `OutgoingEdge` over one Flight stream.

    endpoint:    the port of the consumer's process, with a token that grants the right to deliver messages.
    index:       the number of this edge among the consumer's inputs.
    incarnation: counts the lives of the producer; a newer one shuts out messages of an older one.
    capacity:    the bytes that the consumer may have before it has taken them; one message may exceed it.
    on_failure:  called once, from a thread of the edge, with the reason why the stream broke.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        producer: TaskName,
        consumer: TaskName,
        index: int,
        incarnation: int,
        capacity: int,
        on_failure: Callable[[Exception], None],
    ) -> None:
        self.on_room: Callable[[], None] | None = None
        self._endpoint = endpoint
        self._peer = f"component '{consumer[0]}', task {consumer[1]}"
        self._path = (OPERATION, consumer[0], str(consumer[1]), str(index), str(incarnation), str(capacity))
        self._capacity = capacity
        self._on_failure = on_failure
        self._queue: deque[Message] = deque()
        self._under_way: deque[tuple[int, int]] = deque()
        self._bytes = 0
        self._steps = 0
        self._taken = 0
        self._ended = False
        self._error: Exception | None = None
        self._stream: Any = None
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._freed = threading.Condition(self._lock)
        self._sender_waits = False
        name = f"{producer[0]}[{producer[1]}] to {consumer[0]}[{consumer[1]}]"
        self._reading = threading.Thread(target=self._read, name=f"acknowledgements of {name}", daemon=True)
        self._sending = threading.Thread(target=self._run, name=name, daemon=True)
        self._sending.start()

    @property
    def has_room(self) -> bool:
        """Whether the next message need not wait; False for ever when the edge is closed or broken."""
        return self._bytes < self._capacity and self._steps < STEPS_UNDER_WAY and self._error is None

    def push(self, message: Message) -> None:
        """Take a message without waiting; raises the error that ended the edge."""
        with self._lock:
            self._append(message)

    def put(self, message: Message) -> None:
        """Take a message; a batch waits for room. Raises the error that ended the edge: `StoppedError` if closed."""
        with self._lock:
            if isinstance(message, Batch):
                self._freed.wait_for(lambda: self.has_room or self._error is not None)
            self._append(message)

    def close(self) -> None:
        """Give up at once, whatever is under way; harmless when repeated."""
        with self._lock:
            if self._error is None:
                self._stop(StoppedError("the topology has been stopped"))
            stream = self._stream
        if stream is not None:
            stream.cancel()

    def join(self, seconds: float) -> bool:
        """Wait until everything has been delivered after `End`, or the edge has stopped; return whether it has."""
        self._sending.join(seconds)
        return not self._sending.is_alive()

    def _append(self, message: Message) -> None:
        if self._error is not None:
            raise self._error
        size, steps = message_bytes(message), int(isinstance(message, Punctuation))
        self._queue.append(message)
        self._under_way.append((size, steps))
        self._bytes += size
        self._steps += steps
        if self._sender_waits:
            self._arrived.notify()

    def _run(self) -> None:
        """The thread that writes: connect, write frames until `End`, see the stream to its end."""
        client = writer = None
        try:
            with raised_by(self._peer):
                client = connect(self._endpoint)
                writer, stream = client.do_exchange(descriptor(*self._path), call_options(self._endpoint.token))
                with self._lock:
                    self._stream = stream
                    if self._error is not None:
                        stream.cancel()
                self._reading.start()
                encoder = FrameEncoder()
                while messages := self._next_messages():
                    writer.write_metadata(encoder.encode(messages))
                if self._ended:
                    writer.done_writing()
            self._reading.join()
        except Exception as error:
            if self._reading.is_alive():
                self._reading.join(REASON_SECONDS)
            self._fail(error)
        finally:
            for part in (writer, client):
                _close(part)

    def _next_messages(self) -> list[Message]:
        """Wait for messages and take what waits, up to the size of a frame; none at the end."""
        with self._lock:
            while not self._queue and not self._ended and self._error is None:
                self._sender_waits = True
                self._arrived.wait()
                self._sender_waits = False
            messages: list[Message] = []
            size = 0
            while self._queue and size < FRAME_BYTES:
                message = self._queue.popleft()
                size += message_bytes(message)
                messages.append(message)
                if isinstance(message, End) and not message.source:
                    self._ended = True
            return messages

    def _read(self) -> None:
        """The thread that reads acknowledgements, and learns why a stream ends."""
        try:
            with raised_by(self._peer):
                while True:
                    try:
                        content = self._stream.read_chunk().app_metadata
                    except StopIteration:
                        break
                    self._acknowledge(*ACKNOWLEDGEMENT.unpack(content))
            if not self._ended:
                raise ConnectionLostError(f"{self._peer} ended the edge before all messages had been sent")
        except InterlaceError as error:
            self._fail(error)

    def _acknowledge(self, taken: int) -> None:
        """Forget the messages that the consumer has taken, by their number since the start."""
        with self._lock:
            had_room = self.has_room
            while self._taken < taken and self._under_way:
                size, steps = self._under_way.popleft()
                self._bytes -= size
                self._steps -= steps
                self._taken += 1
            made_room = self.has_room and not had_room
            if made_room:
                self._freed.notify_all()
        if made_room and self.on_room is not None:
            self.on_room()

    def _fail(self, error: Exception) -> None:
        with self._lock:
            if self._error is not None:
                return
            self._stop(error)
        self._on_failure(error)

    def _stop(self, error: Exception) -> None:
        self._error = error
        self._queue.clear()
        self._arrived.notify_all()
        self._freed.notify_all()


def _close(part: Any) -> None:
    try:
        if part is not None:
            part.close()
    except (flight.FlightError, pa.ArrowException, OSError):
        pass  # the reason has been reported, or does not matter any more
