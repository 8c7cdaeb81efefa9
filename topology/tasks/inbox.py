"""The inbox of one task: a queue per input, each bounded in bytes and, for senders that ask, in steps.

A sender waits while its own queue is full, so a slow task slows only the tasks that feed it. The task may leave an
input alone for a while (`blocked`). Then that queue fills up and its sender waits: this is how inputs are aligned.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from topology.graph.errors import StoppedError
from topology.graph.messages import Batch, Message, Punctuation, message_bytes

DEFAULT_CAPACITY = 8 * 1024 * 1024
"""Bytes that may wait on one edge."""

STEPS_WAITING = 1
"""Whole steps that may wait on one edge, beside the one that is worked on: when more arrive, they grow at the gate."""


class Inbox:
    """Messages waiting for one task; any number of threads put, one takes.

    A sender either waits for room (`put`), or asks for room (`has_room`), does something else and is called back
    (`on_room`). Likewise `on_arrival` calls a taker that does not wait. `on_taken` is called with every message that
    is taken, by the thread that takes it.

    whole_steps: a step that has begun always finds room. Where tasks take steps from several inputs in turn, one input
                 may have to wait for the end of another one's step: if half a step could be held up, they would wait
                 for each other.
    """

    def __init__(self, inputs: int, capacity: int = DEFAULT_CAPACITY, whole_steps: bool = False) -> None:
        self._queues: list[deque[Message]] = [deque() for _ in range(inputs)]
        self._bytes = [0] * inputs
        self._steps = [0] * inputs
        self._capacity = capacity
        self._whole_steps = whole_steps
        self._next = 0
        self._closed = False
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._freed = threading.Condition(self._lock)
        self._waiting_senders = 0
        self.on_arrival: Callable[[], None] | None = None
        self.on_room: Callable[[int], None] | None = None
        self.on_taken: Callable[[int, Message], None] | None = None

    def has_room(self, index: int) -> bool:
        """Whether the next message of this input need not wait: bytes and whole steps are within their bounds."""
        return (self._whole_steps or self._bytes[index] < self._capacity) and self._steps[index] < STEPS_WAITING

    def push(self, index: int, message: Message) -> None:
        """Add a message without waiting, for a sender that has asked for room; one batch may exceed the bound."""
        with self._lock:
            self._append(index, message, message_bytes(message))
        if self.on_arrival is not None:
            self.on_arrival()

    def push_all(self, index: int, messages: Sequence[Message]) -> None:
        """Add messages that came together, all or none; as `push`."""
        with self._lock:
            for message in messages:
                self._append(index, message, message_bytes(message))
        if self.on_arrival is not None:
            self.on_arrival()

    def put(self, index: int, message: Message, timeout: float | None = None) -> bool:
        """Add a message; wait while the input's queue is full. Return False if `timeout` passed first.

        A batch larger than the bound enters an empty queue. Control messages never wait.
        """
        size = message_bytes(message)
        with self._lock:
            if isinstance(message, Batch) and not self._wait(index, size, timeout):
                return False
            self._append(index, message, size)
        if self.on_arrival is not None:
            self.on_arrival()
        return True

    def wait_for_room(self, index: int, batch: Batch, timeout: float | None = None) -> bool:
        """Wait until `put` would take a batch at once, if nobody else puts; False if `timeout` passed first."""
        with self._lock:
            return self._wait(index, batch.nbytes, timeout)

    def poll(self, blocked: Callable[[int], bool] | None = None) -> tuple[int, Message] | None:
        """Take the next message of an input that is not blocked, taking inputs in turn; None if there is none."""
        with self._lock:
            found = self._poll(blocked)
            if found is None:
                return None
            index, message = found
            made_room = self.has_room(index) and (
                isinstance(message, Punctuation) or self._bytes[index] + message_bytes(message) >= self._capacity
            )
        if made_room and self.on_room is not None:
            self.on_room(index)
        if self.on_taken is not None:
            self.on_taken(*found)
        return found

    def take(
        self, blocked: Callable[[int], bool] | None = None, timeout: float | None = None
    ) -> tuple[int, Message] | None:
        """As `poll`, but wait for a message; None if the inbox is closed or `timeout` has passed."""
        limit = None if timeout is None else time.monotonic() + timeout
        while not self._closed:
            found = self.poll(blocked)
            if found is not None:
                return found
            left = None if limit is None else limit - time.monotonic()
            if left is not None and left <= 0:
                return None
            with self._lock:
                self._arrived.wait_for(lambda: self._closed or self._takeable(blocked), left)
        return None

    def close(self) -> None:
        """Drop all messages; senders get `StoppedError`, the taker gets None."""
        with self._lock:
            self._closed = True
            for index, queue in enumerate(self._queues):
                queue.clear()
                self._bytes[index] = self._steps[index] = 0
            self._arrived.notify_all()
            self._freed.notify_all()

    @property
    def closed(self) -> bool:
        """Whether `close` has been called."""
        return self._closed

    @property
    def is_empty(self) -> bool:
        """Whether no message waits."""
        return not any(self._queues)

    @property
    def nbytes(self) -> int:
        """Bytes waiting now, over all inputs."""
        return sum(self._bytes)

    @property
    def waiting_bytes(self) -> tuple[int, ...]:
        """Bytes waiting now, for each input."""
        return tuple(self._bytes)

    def _wait(self, index: int, size: int, timeout: float | None) -> bool:
        if not self._full(index, size):
            return True
        self._waiting_senders += 1
        try:
            return self._freed.wait_for(lambda: self._closed or not self._full(index, size), timeout)
        finally:
            self._waiting_senders -= 1

    def _append(self, index: int, message: Message, size: int) -> None:
        if self._closed:
            raise StoppedError("the topology has been stopped")
        self._queues[index].append(message)
        self._bytes[index] += size
        self._steps[index] += isinstance(message, Punctuation)
        self._arrived.notify()

    def _full(self, index: int, size: int) -> bool:
        return bool(self._queues[index]) and self._bytes[index] + size > self._capacity

    def _takeable(self, blocked: Callable[[int], bool] | None) -> bool:
        return any(queue and not (blocked is not None and blocked(index)) for index, queue in enumerate(self._queues))

    def _poll(self, blocked: Callable[[int], bool] | None) -> tuple[int, Message] | None:
        inputs = len(self._queues)
        for ahead in range(inputs):
            index = (self._next + ahead) % inputs
            queue = self._queues[index]
            if queue and not (blocked is not None and blocked(index)):
                message = queue.popleft()
                self._bytes[index] -= message_bytes(message)
                self._steps[index] -= isinstance(message, Punctuation)
                self._next = (index + 1) % inputs
                if self._waiting_senders:
                    self._freed.notify_all()
                return index, message
        return None
