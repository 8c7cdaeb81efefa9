"""Channels between tasks in different processes: a producer's messages go to a consumer's inbox over Flight."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from topology.flight.auth import Caller, Right, call_options
from topology.flight.connection import connect
from topology.flight.errors import raised_by
from topology.flight.port import FlightPort, Path, descriptor
from topology.flight.wire import MessageReader, MessageWriter, Turnstile
from topology.graph.components import Origin
from topology.graph.errors import InputError
from topology.graph.messages import Message
from topology.handle.endpoint import Endpoint
from topology.tasks.inbox import Inbox

_OPERATION = "channel"


class FlightChannel:
    """The producer's end: call it with a message; it returns when there is room for it.

    Flight's window and the consumer's inbox bound the bytes on their way.
    """

    def __init__(self, location: str, token: str, index: int, incarnation: int, consumer: str) -> None:
        self._consumer = consumer
        self._client = connect(Endpoint(location, token))
        with raised_by(consumer):
            path = descriptor(_OPERATION, str(index), str(incarnation))
            self._writer, self._reader = self._client.do_exchange(path, call_options(token))
        self._messages = MessageWriter(self._writer)

    def __call__(self, message: Message) -> None:
        """Send one message."""
        with raised_by(self._consumer):
            self._messages.write(message)

    def end(self) -> None:
        """End the stream: nothing follows."""
        with raised_by(self._consumer):
            self._writer.done_writing()

    def close(self) -> None:
        """Close the connection, whatever its state."""
        for part in (self._writer, self._client):
            try:
                part.close()
            except (flight.FlightError, pa.ArrowException, OSError):
                pass


class ChannelReceiver:
    """The consumer's end of all its channels: puts messages into the inbox, each once and in order."""

    def __init__(self, origins: Sequence[Origin], inbox: Inbox, port: FlightPort) -> None:
        self._inbox = inbox
        self._port = port
        self._turnstiles = [Turnstile(f"{origin.component}[{origin.task}]") for origin in origins]
        port.exchanges[_OPERATION] = self._receive

    def _receive(self, caller: Caller, path: Path, reader: Any, writer: Any) -> None:
        caller.require(Right.CHANNEL)
        index, incarnation = self._address(path)
        turnstile = self._turnstiles[index]
        turnstile.open(incarnation)
        for sequence, message in MessageReader(reader):
            self._port.require_open()
            turnstile.deliver(incarnation, sequence, partial(self._inbox.put, index, message))

    def _address(self, path: Path) -> tuple[int, int]:
        if len(path) != 2 or not all(part.isdecimal() for part in path) or int(path[0]) >= len(self._turnstiles):
            raise InputError("no such channel")
        return int(path[0]), int(path[1])
