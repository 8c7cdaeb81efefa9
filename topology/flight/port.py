"""The Flight server of a process: a port that checks tokens and returns typed errors.

Without a certificate it listens on loopback only; nothing is reachable from other machines without TLS.

The port's owners register its operations: a `TopologyServer` takes rows and gives results, a task receives channels.
A call names its operation and the operation's subject, so any Arrow client can make one: as the path of a descriptor
(`send`, stream, source), as a JSON list in a ticket, or as an action's type with a JSON list in the first line of its
body.
"""

from __future__ import annotations

import atexit
import gc
import ipaddress
import json
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from topology.flight.auth import MIDDLEWARE, Authority, Caller, TokenCheck
from topology.flight.errors import sent_to_client
from topology.flight.tls import Certificate
from topology.graph.errors import InputError, StoppedError, TopologyError
from topology.handle.endpoint import ENCRYPTED, PLAIN, Endpoint, location_of

LOOPBACK = "127.0.0.1"
CLOSE_SECONDS = 2.0
HEARTBEAT = "heartbeat"
"""The action that every port answers; see `heartbeat.py`."""

SILENT_SECONDS = 60.0
"""After how long without a heartbeat a client is taken to be gone: many times the interval of heartbeats."""

MOST_PEERS = 1000
"""When more connections than this have had heartbeats, those long silent are forgotten."""

Path = tuple[str, ...]
"""The subject of an operation: names of streams, sources, attempts."""

TakeRows = Callable[[Caller, Path, Any, Any], None]
GiveRows = Callable[[Caller, Path, flight.ServerCallContext], tuple[pa.Schema, Iterator[Any]]]
Act = Callable[[Caller, Path, bytes], bytes]


class FlightPort(flight.FlightServerBase):
    """A Flight server on a free port; its owners register operations by name."""

    def __init__(self, authority: Authority, host: str = LOOPBACK, certificate: Certificate | None = None) -> None:
        _check_host(host, certificate)
        self.puts: dict[str, TakeRows] = {}
        self.exchanges: dict[str, TakeRows] = {}
        self.gets: dict[str, GiveRows] = {}
        self.actions: dict[str, Act] = {HEARTBEAT: lambda caller, path, body: b""}
        self._heard: dict[str, float] = {}
        self.closed = False
        scheme = PLAIN if certificate is None else ENCRYPTED
        shown = None if certificate is None else [(str(certificate.chain_pem), str(certificate.key_pem))]
        try:
            super().__init__(
                location_of(scheme, host, 0), tls_certificates=shown, middleware={MIDDLEWARE: TokenCheck(authority)}
            )
        except (pa.ArrowException, OSError) as error:
            cause = "" if certificate is None else "; is its key that of the certificate, and are both PEM?"
            raise TopologyError(f"cannot listen on {host}: {error}{cause}") from None
        self.location = location_of(scheme, host, self.port)
        self._root = None if certificate is None else certificate.root
        # At the interpreter's exit pyarrow shuts servers down and waits for their clients without limit: an idle
        # client in another process would keep this one from ending. Our `close` waits only a moment. It does wait,
        # because a handler that runs Python code while the interpreter goes away would abort the process.
        for held in gc.get_referents(self):
            if isinstance(held, weakref.finalize):
                held.atexit = False
        atexit.register(self.close)

    def endpoint(self, token: str) -> Endpoint:
        """Return where clients reach this port, with a token that the port knows."""
        return Endpoint(self.location, token, self._root)

    def close(self) -> None:
        """Stop listening. Running calls end at their next message, those of idle clients with the process."""
        if self.closed:
            return
        self.closed = True
        atexit.unregister(self.close)
        ending = threading.Thread(target=self.shutdown, name="closing the Flight port", daemon=True)
        ending.start()
        ending.join(CLOSE_SECONDS)

    def require_open(self) -> None:
        """Raise `StoppedError` if the port is closed; handlers call it before each message."""
        if self.closed:
            raise StoppedError("the topology has been stopped")

    def has_lost(self, context: flight.ServerCallContext) -> bool:
        """Whether the client of a call has fallen silent: its connection had heartbeats, and has them no more."""
        heard = self._heard.get(context.peer())
        return heard is not None and time.monotonic() - heard > SILENT_SECONDS

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Take rows from a client."""
        with sent_to_client():
            operation, path = _named(descriptor.path)
            _known(self.puts, operation)(_caller(context), path, reader, writer)

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Take messages from another task."""
        with sent_to_client():
            operation, path = _named(descriptor.path)
            _known(self.exchanges, operation)(_caller(context), path, reader, writer)

    def do_get(self, context: Any, ticket: Any) -> flight.GeneratorStream:
        """Give rows to a client."""
        with sent_to_client():
            operation, path = _named(_list(ticket.ticket))
            self._heard.pop(context.peer(), None)  # those of an earlier connection from the same address and port
            schema, batches = _known(self.gets, operation)(_caller(context), path, context)
            return flight.GeneratorStream(schema, _reporting(batches))

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """Run a small operation for a client."""
        with sent_to_client():
            if action.type == HEARTBEAT:
                self._note_heartbeat(context.peer())
            names, _, content = action.body.to_pybytes().partition(b"\n")
            yield _known(self.actions, action.type)(_caller(context), tuple(_list(names)), content)

    def _note_heartbeat(self, peer: str) -> None:
        now = time.monotonic()
        self._heard[peer] = now
        if len(self._heard) > MOST_PEERS:  # each connection is a new peer
            for other, heard in list(self._heard.items()):
                if now - heard > 10 * SILENT_SECONDS:
                    self._heard.pop(other, None)


def _check_host(host: str, certificate: Certificate | None) -> None:
    """Refuse a host that this machine does not have, or that other machines could reach without TLS."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        addresses = [ipaddress.ip_address(address[0]) for *_, address in found]
        if any(address.is_unspecified for address in addresses):
            raise TopologyError(f"cannot listen on {host}: name the address of this machine that clients connect to")
        if certificate is None and not all(address.is_loopback for address in addresses):
            raise TopologyError(
                f"cannot listen on {host} without a certificate: other machines reach this address, and rows and "
                f"tokens would travel unencrypted; use {LOOPBACK}, or give the port a certificate for {host}"
            )
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as attempt:
                attempt.bind(address)
    except OSError as error:
        raise TopologyError(
            f"cannot listen on {host}: {error.strerror}; use an address of this machine ({socket.gethostname()})"
        ) from None


def ticket(*parts: str) -> flight.Ticket:
    """Return the ticket that names an operation and its subject."""
    return flight.Ticket(json.dumps(parts).encode())


def action(operation: str, *parts: str, body: bytes = b"") -> flight.Action:
    """Return the action that names an operation and its subject."""
    return flight.Action(operation, json.dumps(parts).encode() + b"\n" + body)


def descriptor(*parts: str) -> flight.FlightDescriptor:
    """Return the descriptor that names an operation and its subject."""
    return flight.FlightDescriptor.for_path(*parts)


def _reporting(batches: Iterator[Any]) -> Iterator[Any]:
    with sent_to_client():
        yield from batches


def _caller(context: Any) -> Caller:
    caller = context.get_middleware(MIDDLEWARE)
    assert isinstance(caller, Caller)
    return caller


def _named(parts: Sequence[str | bytes] | None) -> tuple[str, Path]:
    try:
        operation, *path = [part.decode() if isinstance(part, bytes) else part for part in parts or ()]
    except ValueError:
        raise InputError("the call does not name an operation") from None
    return operation, tuple(path)


def _list(content: bytes) -> list[str]:
    try:
        parts = json.loads(content)
    except ValueError:
        parts = None
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise InputError("the call must name its subject as a JSON list of strings")
    return parts


def _known(operations: dict[str, Any], name: str) -> Any:
    if name not in operations:
        known = ", ".join(f"'{known}'" for known in operations) or "none"
        raise InputError(f"there is no operation '{name[:40]}' of this kind; operations: {known}")
    return operations[name]
