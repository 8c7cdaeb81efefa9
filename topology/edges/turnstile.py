"""Passes each message of one edge once, in order, and only from the newest incarnation of its sender."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from topology.graph.errors import StaleStreamError
from topology.graph.messages import Message


class Turnstile:
    """The consumer's memory of one edge: which incarnation sends, and which message is due.

    least: the incarnation of the consumer; older senders are refused.
    """

    def __init__(self, name: str, least: int = 0) -> None:
        self._name = name
        self._least = least
        self._incarnation = -1
        self._expected = 0
        self._lock = threading.Lock()

    def open(self, incarnation: int) -> bool:
        """Start a stream of an incarnation; a newer one shuts older ones out. Return whether it is newer."""
        with self._lock:
            if incarnation < max(self._incarnation, self._least):
                raise StaleStreamError(self._stale(incarnation))
            newer = incarnation > self._incarnation
            if newer:
                self._incarnation = incarnation
                self._expected = 0
            return newer

    def deliver(
        self, incarnation: int, first: int, messages: Sequence[Message], push: Callable[[Sequence[Message]], object]
    ) -> None:
        """Push consecutive messages, the first with number `first`; leave out those that came before."""
        with self._lock:
            if incarnation != self._incarnation:
                raise StaleStreamError(self._stale(incarnation))
            if first > self._expected:
                raise StaleStreamError(f"edge {self._name}: message {first} came instead of message {self._expected}")
            fresh = messages[self._expected - first :]
            if fresh:
                push(fresh)
                self._expected += len(fresh)

    def _stale(self, incarnation: int) -> str:
        newest = max(self._incarnation, self._least)
        return f"edge {self._name}: incarnation {incarnation} has been replaced by {newest}"
