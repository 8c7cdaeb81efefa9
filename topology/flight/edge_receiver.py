"""The consumers' ends of all edges into a process: puts messages into the inboxes of its tasks, and acknowledges them.

A message is acknowledged when its task has taken it from the inbox. One acknowledgement covers all messages up to it,
so it is written only now and then, by the thread that takes: after a few steps, or a part of the sender's capacity.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from topology.flight.auth import Caller
from topology.flight.operations import Path
from topology.flight.port import FlightPort
from topology.flight.turnstile import Turnstile
from topology.flight.wire import FrameDecoder
from topology.graph.components import Origin
from topology.graph.errors import InputError
from topology.graph.graph import TaskName
from topology.graph.messages import Message, Punctuation, message_bytes
from topology.handle.rights import Right
from topology.tasks.inbox import Inbox

OPERATION = "edge"
ACKNOWLEDGEMENT = struct.Struct("<Q")
"""The number of messages of this incarnation that the consumer's task has taken."""

ACKNOWLEDGED_STEPS = 2
"""Steps taken before they are acknowledged: fewer than the sender may have under way, or it would wait for ever."""

ACKNOWLEDGED_PART = 4
"""The part of the sender's capacity, as a divisor, after which bytes taken are acknowledged."""


class EdgeReceiver:
    """Receives the edges into all tasks of a process on one port.

    A stream names its edge: consumer's component and task, index among the consumer's inputs; then the incarnation of
    the producer and the capacity of the edge in bytes.
    """

    def __init__(self, port: FlightPort, tasks: Mapping[TaskName, tuple[Sequence[Origin], Inbox]]) -> None:
        self._port = port
        self._inputs: dict[tuple[str, ...], _EdgeInput] = {}
        for (component, task), (origins, inbox) in tasks.items():
            inputs = [_EdgeInput(origin, inbox) for origin in origins]
            self._inputs |= {(component, str(task), str(index)): each for index, each in enumerate(inputs)}
            inbox.on_taken = partial(_note_taken, inputs)
        port.exchanges[OPERATION] = self._receive

    def _receive(self, caller: Caller, path: Path, reader: Any, writer: Any) -> None:
        caller.require(Right.CHANNEL)
        *edge, incarnation, capacity = path if len(path) == 5 else ("", "")
        found = self._inputs.get(tuple(edge))
        if found is None or not incarnation.isdecimal() or not capacity.isdecimal():
            raise InputError("there is no such edge in this process")
        found.open(int(incarnation), int(capacity), writer)
        decoder = FrameDecoder()
        try:
            while True:
                try:
                    frame = reader.read_chunk().app_metadata
                except StopIteration:
                    return
                self._port.require_open()
                found.deliver(int(incarnation), *decoder.decode(frame))
        finally:
            found.leave(writer)


def _note_taken(inputs: Sequence[_EdgeInput], index: int, message: Message) -> None:
    inputs[index].note_taken(message)


class _EdgeInput:
    """One input of one task: delivers the messages of its edge, counts those taken and acknowledges them.

    `open`, `deliver` and `leave` are called by the thread of the stream, `note_taken` by the one that runs the task.
    """

    def __init__(self, origin: Origin, inbox: Inbox) -> None:
        self._index = origin.index
        self._inbox = inbox
        self._turnstile = Turnstile(f"{origin.component}[{origin.task}]")
        self._lock = threading.Lock()
        self._writer: Any = None
        self._capacity = 0
        self._delivered = 0
        self._taken = 0
        self._before = 0  # messages delivered by older incarnations
        self._bytes = 0
        self._steps = 0

    def open(self, incarnation: int, capacity: int, writer: Any) -> None:
        """Begin to serve a stream; acknowledgements go to it from now on."""
        newer = self._turnstile.open(incarnation)
        with self._lock:
            if newer:
                self._before = self._delivered
            self._writer = writer
            self._capacity = capacity

    def leave(self, writer: Any) -> None:
        """Stop using a stream that ends: its writer is gone when the handler returns."""
        with self._lock:
            if self._writer is writer:
                self._writer = None

    def deliver(self, incarnation: int, first: int, messages: Sequence[Message]) -> None:
        """Put messages into the inbox; the sender has asked for room."""
        self._turnstile.deliver(incarnation, first, messages, self._push)

    def _push(self, messages: Sequence[Message]) -> None:
        self._inbox.push_all(self._index, messages)
        self._delivered += len(messages)

    def note_taken(self, message: Message) -> None:
        """Count a message that the task has taken; acknowledge all so far if enough has come together."""
        self._taken += 1
        self._bytes += message_bytes(message)
        self._steps += isinstance(message, Punctuation)
        if self._steps < ACKNOWLEDGED_STEPS and self._bytes * ACKNOWLEDGED_PART < self._capacity:
            return
        self._bytes = self._steps = 0
        with self._lock:
            taken = self._taken - self._before
            if self._writer is None or taken <= 0:
                return
            try:
                self._writer.write_metadata(ACKNOWLEDGEMENT.pack(taken))
            except (flight.FlightError, pa.ArrowException, OSError):
                self._writer = None  # the stream's own thread learns why
