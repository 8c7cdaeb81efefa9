"""What the producer's end of an edge knows of its messages: which of them the consumer has not taken yet."""

from __future__ import annotations

from collections import deque

from topology.graph.messages import Message, Punctuation, message_bytes

STEPS_UNDER_WAY = 3
"""Steps that a consumer may have before it has taken the first of them."""


class UnderWay:
    """Counts messages from when they are pushed until they are acknowledged. Not thread-safe.

    capacity:    the bytes that may be under way; one message may exceed it.
    whole_steps: a step that has begun always finds room; see `Inbox`.
    """

    def __init__(self, capacity: int, whole_steps: bool = False) -> None:
        self._whole_steps = whole_steps
        self._capacity = capacity
        self._sizes: deque[tuple[int, int]] = deque()
        self._bytes = 0
        self._steps = 0
        self._taken = 0

    @property
    def has_room(self) -> bool:
        """Whether the next message need not wait."""
        return (self._whole_steps or self._bytes < self._capacity) and self._steps < STEPS_UNDER_WAY

    @property
    def is_full(self) -> bool:
        """Whether the bytes are used up: the consumer is asked to answer soon, as it may measure rows differently."""
        return self._bytes >= self._capacity

    def add(self, message: Message) -> int:
        """Count a message; return its size."""
        size, steps = message_bytes(message), int(isinstance(message, Punctuation))
        self._sizes.append((size, steps))
        self._bytes += size
        self._steps += steps
        return size

    def acknowledge(self, taken: int) -> bool:
        """Forget the messages that the consumer has taken, by their number since the start; whether that made room."""
        had_room = self.has_room
        while self._taken < taken and self._sizes:
            size, steps = self._sizes.popleft()
            self._bytes -= size
            self._steps -= steps
            self._taken += 1
        return self.has_room and not had_room
