"""The consumer's end of one edge: delivers its messages to an inbox, and acknowledges those that were taken.

A message is acknowledged when its task has taken it from the inbox. One acknowledgement covers all messages up to it,
so it is sent only now and then, by the thread that takes: after a few steps, or a part of the sender's capacity; and
when the sender has no room and says so, for the two ends may measure the same rows differently.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from topology.edges.hello import Answer
from topology.edges.turnstile import Turnstile
from topology.graph.components import Origin
from topology.graph.messages import Message, Punctuation, message_bytes
from topology.tasks.inbox import Inbox

ACKNOWLEDGED_STEPS = 2
"""Steps taken before they are acknowledged: fewer than the sender may have under way, or it would wait for ever."""

ACKNOWLEDGED_PART = 4
"""The part of the sender's capacity, as a divisor, after which bytes taken are acknowledged."""


class Session(Protocol):
    """One life of an edge: what answers go through."""

    def send(self, answer: Answer, number: int = 0) -> None:
        """Send an answer; raises OSError if the producer has gone."""


class EdgeInput:
    """One input of one task: delivers the messages of its edge, counts those taken and acknowledges them.

    `open`, `deliver` and `leave` are called by threads of the edge, `note_taken` by the one that runs the task.
    """

    def __init__(self, origin: Origin, inbox: Inbox, incarnation: int) -> None:
        self._index = origin.index
        self._inbox = inbox
        self._turnstile = Turnstile(f"{origin.component}[{origin.task}]", incarnation)
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._capacity = 0
        self._delivered = 0
        self._taken = 0
        self._before = 0  # messages delivered by older incarnations
        self._wanted = 0  # acknowledge when so many have been taken
        self._bytes = 0
        self._steps = 0

    def open(self, incarnation: int, capacity: int, session: Session) -> None:
        """Begin a session; acknowledgements go to it from now on."""
        newer = self._turnstile.open(incarnation)
        with self._lock:
            if newer:
                self._before = self._delivered
            self._session = session
            self._capacity = capacity

    def leave(self, session: Session) -> None:
        """Stop using a session that ends."""
        with self._lock:
            if self._session is session:
                self._session = None

    def deliver(self, incarnation: int, first: int, messages: Sequence[Message], answer_wanted: bool) -> None:
        """Put messages into the inbox; the sender has asked for room."""
        self._turnstile.deliver(incarnation, first, messages, partial(self._push, answer_wanted))

    def _push(self, answer_wanted: bool, messages: Sequence[Message]) -> None:
        if answer_wanted:
            self._wanted = self._delivered + len(messages)  # before the task can have taken them
        self._inbox.push_all(self._index, messages)
        self._delivered += len(messages)

    def note_taken(self, message: Message) -> None:
        """Count a message that the task has taken; acknowledge all so far if enough has come together."""
        self._taken += 1
        self._bytes += message_bytes(message)
        self._steps += isinstance(message, Punctuation)
        is_due = self._steps >= ACKNOWLEDGED_STEPS or self._bytes * ACKNOWLEDGED_PART >= self._capacity
        if not is_due and self._taken != self._wanted:
            return
        self._bytes = self._steps = 0
        with self._lock:
            taken = self._taken - self._before
            if taken > 0:
                self._send(Answer.TAKEN, taken)

    def say_alive(self) -> None:
        """Send a sign of life, if there is an edge."""
        with self._lock:
            self._send(Answer.ALIVE)

    def _send(self, answer: Answer, number: int = 0) -> None:
        if self._session is not None:
            try:
                self._session.send(answer, number)
            except OSError:
                self._session = None  # the connection of its frames ends, too
