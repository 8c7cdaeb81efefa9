"""The producer's end of an edge to a task in another process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from topology.graph.messages import Message


class OutgoingEdge(Protocol):
    """Carries messages to one task elsewhere, in order and each once; bounded in bytes and steps under way."""

    on_room: Callable[[], None] | None
    """Called each time that room appears."""

    @property
    def has_room(self) -> bool:
        """Whether the next message need not wait."""

    def push(self, message: Message) -> None:
        """Take a message without waiting, from a sender that has asked for room."""

    def flush(self) -> None:
        """Send what has been pushed. Call it when the task pauses: until then an edge may collect a step."""

    def put(self, message: Message) -> None:
        """Take a message; wait while there is no room. Raises `StoppedError` when closed."""

    def close(self) -> None:
        """Give up at once, whatever is under way."""
