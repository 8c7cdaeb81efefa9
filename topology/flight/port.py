"""The Flight server of a process: a port that checks tokens and returns typed errors.

Without a certificate it listens on loopback only; nothing is reachable from other machines without TLS.

The port's owners register its operations; `operations.py` says how a call names one. It serves the edges between the
topology's own processes. Clients call a `ClientPort`, because Arrow's Flight server reads messages of any size, some
even before it has checked a token. So a worker's port talks only to processes that show a certificate of their own.
"""

from __future__ import annotations

import atexit
import gc
import ipaddress
import socket
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from topology.flight.auth import MIDDLEWARE, Caller, TokenCheck
from topology.flight.errors import sent_to_client
from topology.flight.operations import HEARTBEAT, Path, find_operation, read_list, split_path
from topology.flight.tls import Certificate
from topology.graph.errors import StoppedError, TopologyError
from topology.handle.endpoint import ENCRYPTED, LOOPBACK, PLAIN, Endpoint, location_of
from topology.handle.rights import Authority

CLOSE_SECONDS = 2.0

Exchange = Callable[[Caller, Path, Any, Any], None]
Act = Callable[[Caller, Path, bytes], bytes]


class FlightPort(flight.FlightServerBase):
    """A Flight server on a free port; its owners register operations by name.

    peers_only: talk only to processes that show a certificate of the same authority, if that issues such certificates.
    """

    def __init__(
        self,
        authority: Authority,
        host: str = LOOPBACK,
        certificate: Certificate | None = None,
        *,
        peers_only: bool = False,
    ) -> None:
        check_host(host, certificate)
        self.exchanges: dict[str, Exchange] = {}
        self.actions: dict[str, Act] = {HEARTBEAT: lambda caller, path, body: b""}
        self.closed = False
        scheme = PLAIN if certificate is None else ENCRYPTED
        shown = None if certificate is None else [(str(certificate.chain_pem), str(certificate.key_pem))]
        try:
            trusted = certificate.root if peers_only and certificate and certificate.identifies_clients else None
            super().__init__(
                location_of(scheme, host, 0),
                tls_certificates=shown,
                verify_client=trusted is not None,
                root_certificates=trusted,
                middleware={MIDDLEWARE: TokenCheck(authority)},
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

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Take messages from another task."""
        with sent_to_client():
            operation, path = split_path(descriptor.path)
            find_operation(self.exchanges, operation)(_caller(context), path, reader, writer)

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """Run a small operation for a client."""
        with sent_to_client():
            names, _, content = action.body.to_pybytes().partition(b"\n")
            yield find_operation(self.actions, action.type)(_caller(context), tuple(read_list(names)), content)


def check_host(host: str, certificate: Certificate | None) -> None:
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


def _caller(context: Any) -> Caller:
    caller = context.get_middleware(MIDDLEWARE)
    assert isinstance(caller, Caller)
    return caller
