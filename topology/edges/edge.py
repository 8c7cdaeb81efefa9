"""The producer's end of an edge to a task in another process: messages go to the consumer's inbox over a socket.

Messages wait in a queue until their step is complete or their task pauses. Then all are packed into one frame. A small
frame is written at once. A large one is left to a thread of the edge, so that tasks do not wait for the network.

The consumer acknowledges what its task has taken from the inbox. There is room while the messages that it has not
taken are few in bytes and in steps. So a slow consumer makes its producers wait; their backlogs grow, and with them
their steps.
"""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable

from topology.edges.hello import Answer, Edge, receive_answer, send_hello
from topology.edges.sockets import SILENCE_SECONDS, Peer, dial, lost_to, send, shut
from topology.edges.under_way import UnderWay
from topology.edges.wire import FrameEncoder
from topology.graph.errors import ConnectionLostError, InterlaceError, StoppedError
from topology.graph.errors_as_text import error_from_text
from topology.graph.graph import TaskName
from topology.graph.messages import Batch, End, Idle, Message, Watermark, message_bytes
from topology.security.tls import Certificate

FRAME_BYTES = 4 * 1024 * 1024
"""A frame takes no further message beyond this size."""

SMALL_FRAME_BYTES = 64 * 1024
"""A frame up to this size is written by the thread that completes it: waking another would take longer."""

REASON_SECONDS = 5.0
"""How long a failed write waits for the reason, which comes on the reading side of the stream."""


class SocketEdge:
    """An `OutgoingEdge` to another process.

    peer:        the consumer's process, with a token that grants the right to deliver messages.
    index:       the number of this edge among the consumer's inputs.
    incarnation: counts the lives of the producer; a newer one shuts out messages of an older one.
    capacity:    the bytes that the consumer may have before it has taken them; one message may exceed it.
    on_failure:  called once, from a thread of the edge, with the reason why the edge broke.
    certificate: what proves to the consumer's process who this one is; None without encryption.
    whole_steps: a step that has begun always finds room; see `Inbox`.
    """

    def __init__(
        self,
        peer: Peer,
        producer: TaskName,
        consumer: TaskName,
        index: int,
        incarnation: int,
        capacity: int,
        on_failure: Callable[[Exception], None],
        certificate: Certificate | None = None,
        whole_steps: bool = False,
    ) -> None:
        self.on_room: Callable[[], None] | None = None
        self._peer = peer
        self._certificate = certificate
        self._consumer = f"component '{consumer[0]}', task {consumer[1]}"
        self._edge = Edge(consumer[0], consumer[1], index, incarnation, capacity)
        self._on_failure = on_failure
        self._queue: deque[Message] = deque()
        self._queued_bytes = 0
        self._due = False  # what is queued is to be written now
        self._writing = False
        self._under_way = UnderWay(capacity, whole_steps)
        self._ended = False
        self._error: Exception | None = None
        self._write_error: Exception | None = None
        self._encoder = FrameEncoder()
        self._answers: socket.socket | None = None
        self._frames: socket.socket | None = None
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._freed = threading.Condition(self._lock)
        name = f"{producer[0]}[{producer[1]}] to {consumer[0]}[{consumer[1]}]"
        self._reading = threading.Thread(target=self._read, name=f"acknowledgements of {name}", daemon=True)
        self._sending = threading.Thread(target=self._run, name=name, daemon=True)
        self._sending.start()

    @property
    def has_room(self) -> bool:
        """Whether the next message need not wait; False for ever when the edge is closed or broken."""
        return self._under_way.has_room and self._error is None

    def push(self, message: Message) -> None:
        """Take a message without waiting; raises the error that ended the edge."""
        with self._lock:
            self._append(message)
            if isinstance(message, Batch | Watermark | Idle) and self.has_room:
                return  # the rest of its step follows, or `flush`
        self.flush()

    def put(self, message: Message) -> None:
        """Take a message; a batch waits for room. Raises the error that ended the edge: `StoppedError` if closed."""
        with self._lock:
            if isinstance(message, Batch):
                self._freed.wait_for(lambda: self.has_room or self._error is not None)
            self._append(message)
            self._due = True
            self._work.notify()

    def flush(self) -> None:
        """Send what has been pushed: no more will follow soon."""
        with self._lock:
            if not self._queue:
                return
            self._due = True
            if self._writing:
                return
            if self._frames is None or self._queued_bytes > SMALL_FRAME_BYTES:
                self._work.notify()
                return
            messages = self._taken_from_queue()
        self._write(messages)

    def close(self) -> None:
        """Give up at once, whatever is under way; harmless when repeated."""
        with self._lock:
            if self._error is None:
                self._stop(StoppedError("the topology has been stopped"))
        self._shut()

    def join(self, seconds: float) -> bool:
        """Wait until everything has been delivered after `End`, or the edge has stopped; return whether it has."""
        self._sending.join(seconds)
        return not self._sending.is_alive()

    def _append(self, message: Message) -> None:
        if self._error is not None:
            raise self._error
        self._queue.append(message)
        self._queued_bytes += self._under_way.add(message)

    def _run(self) -> None:
        """The thread of the edge: connect, write what is due until `End`, see the edge to its end."""
        try:
            with lost_to(self._consumer):
                self._connect()
                self._reading.start()
                while messages := self._due_messages():
                    self._write(messages)
                if self._write_error is not None:
                    raise self._write_error
                if self._ended and self._frames is not None:
                    send(self._frames, [])
            self._reading.join()
        except Exception as error:
            if self._reading.is_alive():
                self._reading.join(REASON_SECONDS)
            self._fail(error)
        finally:
            self._shut()
            if self._reading.ident is not None:
                self._reading.join()
            for each in (self._frames, self._answers):
                if each is not None:
                    each.close()

    def _connect(self) -> None:
        self._answers = dial(self._peer, self._certificate)
        send_hello(self._answers, self._peer.token, self._edge)
        answer, session, error = receive_answer(self._answers)
        if answer is Answer.ERROR:
            raise error_from_text(error, self._consumer)
        self._answers.settimeout(SILENCE_SECONDS)
        frames = dial(self._peer, self._certificate)
        send_hello(frames, self._peer.token, session=session)
        frames.settimeout(None)
        with self._lock:
            self._frames = frames
        if self._error is not None:
            self._shut()

    def _shut(self) -> None:
        for each in (self._frames, self._answers):
            if each is not None:
                shut(each)

    def _due_messages(self) -> list[Message]:
        """Wait until messages are due and nobody writes, and take them; none at the end."""
        with self._lock:
            while True:
                if self._error is not None or self._write_error is not None:
                    return []
                if not self._writing:
                    if self._due:
                        return self._taken_from_queue()
                    if self._ended:
                        return []
                self._work.wait()

    def _taken_from_queue(self) -> list[Message]:
        """Take the messages of the next frame; the caller writes them and nobody else meanwhile."""
        messages: list[Message] = []
        size = 0
        while self._queue and size < FRAME_BYTES:
            message = self._queue.popleft()
            size += message_bytes(message)
            messages.append(message)
            self._ended = message == End()  # a sequencer also tells of the end of an input, within a step
        self._queued_bytes -= size
        self._due = bool(self._queue)
        self._writing = True
        return messages

    def _write(self, messages: list[Message]) -> None:
        assert self._frames is not None
        try:
            send(self._frames, self._encoder.encode(messages, self._under_way.is_full))
        except Exception as error:
            self._write_error = error  # the thread of the edge finds out the reason
        with self._lock:
            self._writing = False
            if self._due or self._ended or self._write_error is not None:
                self._work.notify()

    def _read(self) -> None:
        """The thread that reads acknowledgements, and learns why an edge ends."""
        assert self._answers is not None
        try:
            with lost_to(self._consumer):
                while True:
                    answer, number, error = receive_answer(self._answers)
                    if answer is Answer.TAKEN:
                        self._acknowledge(number)
                    elif answer is Answer.ERROR:
                        raise error_from_text(error, self._consumer)
                    elif answer is Answer.DONE:
                        break
            if not self._ended:
                raise ConnectionLostError(f"{self._consumer} ended the edge before all messages had been sent")
        except InterlaceError as reason:
            self._fail(reason)
            self._shut()  # a write that waits for a peer that has fallen silent

    def _acknowledge(self, taken: int) -> None:
        """Forget the messages that the consumer has taken, by their number since the start."""
        with self._lock:
            made_room = self._under_way.acknowledge(taken) and self._error is None
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
        self._work.notify_all()
        self._freed.notify_all()
