"""An edge between two processes whose frames travel when somebody says so.

Its two ends are those that ship: what is under way, how messages become frames, who may deliver, what is acknowledged.
Only the sockets between them are missing. As on a socket, frames arrive in their order or not at all. What arrives
twice or out of turn is refused by the turnstile, which is asked here, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pyarrow as pa

from topology.edges.edge_input import EdgeInput
from topology.edges.hello import Answer
from topology.edges.under_way import UnderWay
from topology.edges.wire import FrameDecoder, FrameEncoder
from topology.graph.errors import ConnectionLostError, InterlaceError, StoppedError
from topology.graph.messages import Batch, Idle, Message, Watermark


class SimulatedEdge:
    """An `OutgoingEdge`, and the session of its consumer.

    name:   of producer and consumer.
    held:   nothing moves on it for the moment.
    broken: why it carries nothing any more.
    """

    def __init__(self, name: str, to: EdgeInput, incarnation: int, capacity: int) -> None:
        self.name = name
        self.on_room: Callable[[], None] | None = None
        self.held = False
        self.broken: InterlaceError | None = None
        self._to = to
        self._incarnation = incarnation
        self._queue: list[Message] = []
        self._under_way = UnderWay(capacity)
        self._encoder, self._decoder = FrameEncoder(), FrameDecoder()
        self._frames: deque[pa.Buffer] = deque()
        self._answers: deque[int] = deque()
        self._last: tuple[int, list[Message], bool] | None = None
        to.open(incarnation, capacity, self)

    @property
    def has_room(self) -> bool:
        return self._under_way.has_room and self.broken is None

    @property
    def can_move(self) -> bool:
        """Whether something is on its way."""
        return bool(self._frames or self._answers) and not self.held and self.broken is None

    @property
    def frames(self) -> int:
        """The frames on their way."""
        return len(self._frames)

    def push(self, message: Message) -> None:
        if self.broken is not None:
            raise self.broken
        self._queue.append(message)
        self._under_way.add(message)
        if not (isinstance(message, Batch | Watermark | Idle) and self.has_room):
            self.flush()

    def put(self, message: Message) -> None:
        raise AssertionError("only spouts wait for room, and they have no place in a simulation")

    def flush(self) -> None:
        if self._queue and self.broken is None:
            messages, self._queue = self._queue, []
            self._frames.append(pa.py_buffer(b"".join(self._encoder.encode(messages, self._under_way.is_full))))

    def close(self) -> None:
        self.broken = self.broken or StoppedError("the topology has been stopped")

    def send(self, answer: Answer, number: int = 0) -> None:
        """Take an answer of the consumer."""
        if answer is Answer.TAKEN:
            self._answers.append(number)

    def move(self, answer: bool) -> None:
        """Let the next frame arrive, or the next answer."""
        if self._answers and (answer or not self._frames):
            if self._under_way.acknowledge(self._answers.popleft()) and self.on_room is not None:
                self.on_room()
        else:
            self._last = self._decoder.decode(self._frames.popleft())
            self._deliver(*self._last)

    def repeat(self) -> bool:
        """Let the last frame arrive again; return whether there was one."""
        if self._last is None or self.broken is not None:
            return False
        self._deliver(*self._last)
        return True

    def overtake(self) -> bool:
        """Let the second of two frames arrive first, and the first never; return whether there were two."""
        if self.frames < 2 or self.broken is not None:
            return False
        self._decoder.decode(self._frames.popleft())
        self.move(answer=False)
        return True

    def knock(self, other: SimulatedEdge) -> None:
        """Ask to deliver where the edge of another life does; raises `StaleStreamError` if that is a later one."""
        other._to.open(self._incarnation, 1, self)

    def lose(self) -> None:
        """Cut the connection: what is on its way never arrives."""
        self._frames.clear()
        self._answers.clear()
        self.broken = self.broken or ConnectionLostError(f"edge {self.name}: the connection is lost")

    def _deliver(self, first: int, messages: list[Message], answer_wanted: bool) -> None:
        try:
            self._to.deliver(self._incarnation, first, messages, answer_wanted)
        except InterlaceError as error:
            self.broken = error
