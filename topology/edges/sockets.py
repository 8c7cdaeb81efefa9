"""Sockets between the processes of a topology: TCP, with TLS as soon as there is a certificate.

Each socket carries data in one direction only. Python's encrypted sockets must not be read and written by two threads
at the same time.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from topology.edges.wire import Part
from topology.graph.errors import ConnectionLostError, InterlaceError, TlsError, TopologyError
from topology.handle.endpoint import location_of
from topology.security.listening import check_host
from topology.security.tls import Certificate

PLAIN = "tcp"
ENCRYPTED = "tls"

CONNECT_SECONDS = 10.0
"""How long an attempt to connect, TLS and the first answer included, may take."""

GREETING_SECONDS = 5.0
"""How long a stranger may take to show who it is."""

SILENCE_SECONDS = 20.0
"""How long a link may be dead before its sockets fail."""

_PROBES = 2
_PARTS_AT_ONCE = 64
_SMALL_BYTES = 16 * 1024
"""Pieces up to this size are joined: a further call, or a record of TLS, would cost more than the copy."""

LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Peer:
    """Where another process of the topology listens, and what this one needs to be let in.

    location: `tcp://host:port`, or `tls://host:port`.
    root:     the certificates that sign the peer's, as PEM; None: those that the system trusts.
    """

    location: str
    token: str = field(repr=False)
    root: str | None = field(default=None, repr=False)


class Listener:
    """A listening socket on a free port."""

    def __init__(self, host: str, certificate: Certificate | None) -> None:
        check_host(host, certificate)
        self._context = None if certificate is None else _server_context(host, certificate)
        family = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        self._socket = socket.create_server((host, 0), family=family, backlog=1024)
        scheme = PLAIN if certificate is None else ENCRYPTED
        self.location = location_of(scheme, host, self._socket.getsockname()[1])

    def accept(self) -> socket.socket:
        """Wait for a connection; `encrypted` makes it usable. Raises OSError when closed."""
        return self._socket.accept()[0]

    def encrypted(self, accepted: socket.socket) -> socket.socket:
        """Agree with the peer on TLS, if there is a certificate; waits for `GREETING_SECONDS` at most."""
        _prepare(accepted)
        accepted.settimeout(GREETING_SECONDS)
        if self._context is None:
            return accepted
        return self._context.wrap_socket(accepted, server_side=True)

    def close(self) -> None:
        """Stop listening, and wake a thread that waits in `accept`."""
        shut(self._socket)
        self._socket.close()


def dial(peer: Peer, certificate: Certificate | None) -> socket.socket:
    """Connect to a peer; `certificate` tells it who this process is, where it has one that does."""
    parts = urlsplit(peer.location)
    assert parts.hostname is not None
    assert parts.port is not None
    connected = socket.create_connection((parts.hostname, parts.port), CONNECT_SECONDS)
    try:
        _prepare(connected)
        if parts.scheme == PLAIN:
            return connected
        return _client_context(peer.root, certificate).wrap_socket(connected, server_hostname=parts.hostname)
    except BaseException:
        connected.close()
        raise


def send(to: socket.socket, parts: Sequence[Part]) -> None:
    """Send pieces in their order, after their length in all."""
    pieces = [memoryview(part).cast("B") for part in parts]
    _send_all(to, [memoryview(LENGTH.pack(sum(map(len, pieces)))), *pieces])


def receive(source: socket.socket, into: memoryview) -> None:
    """Fill `into`; raises ConnectionError if the peer ends before."""
    while len(into):
        count = source.recv_into(into)
        if not count:
            raise ConnectionError("the connection has ended")
        into = into[count:]


def receive_length(source: socket.socket) -> int:
    """Receive the length of what follows."""
    content = bytearray(LENGTH.size)
    receive(source, memoryview(content))
    length: int = LENGTH.unpack(content)[0]
    return length


def shut(each: socket.socket) -> None:
    """End a connection at once, and wake the threads that wait for it. The socket is not closed: they still hold it."""
    try:
        # not the method of an encrypted socket: that one would go on in the clear
        socket.socket.shutdown(each, socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended already


@contextmanager
def lost_to(peer: str) -> Iterator[None]:
    """Use it around calls of a socket: a failure names the peer and its likely cause."""
    try:
        yield
    except OSError as error:
        raise _explained(error, peer) from None


def _explained(error: OSError, peer: str) -> InterlaceError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsError(
            f"{peer} shows a certificate that is refused here ({error.verify_message}): check the clocks of both "
            f"machines, and that the certificate names the address and is signed by the root (tls=)"
        )
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        return TlsError(f"{peer} and this process do not agree on TLS ({error.reason}): both need certificates (tls=)")
    if isinstance(error, TimeoutError):
        return ConnectionLostError(
            f"{peer} has fallen silent: its process or machine hangs, or the network between is cut"
        )
    if isinstance(error, socket.gaierror):
        return ConnectionLostError(f"{peer} cannot be found: this machine does not know the host's name")
    return ConnectionLostError(f"{peer} cannot be reached: it has stopped, or its process died")


def _send_all(to: socket.socket, pieces: list[memoryview]) -> None:
    if isinstance(to, ssl.SSLSocket):
        small: list[memoryview] = []
        for piece in pieces:
            if len(piece) > _SMALL_BYTES:
                to.sendall(b"".join(small))
                small = []
                to.sendall(piece)
            else:
                small.append(piece)
        to.sendall(b"".join(small))
        return
    while pieces:
        sent = to.sendmsg(pieces[:_PARTS_AT_ONCE])
        while pieces and sent >= len(pieces[0]):
            sent -= len(pieces.pop(0))
        if sent:
            pieces[0] = pieces[0][sent:]


def _prepare(connected: socket.socket) -> None:
    """Send small messages at once, and notice a dead link."""
    connected.settimeout(CONNECT_SECONDS)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    pause = round(SILENCE_SECONDS / (_PROBES + 1))
    for option, value in (
        ("TCP_KEEPIDLE", pause),
        ("TCP_KEEPINTVL", pause),
        ("TCP_KEEPCNT", _PROBES),
        ("TCP_USER_TIMEOUT", round(1000 * SILENCE_SECONDS)),
    ):
        if hasattr(socket, option):  # not on every system
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def _server_context(host: str, certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0  # nobody would read them
    try:
        _show(context, certificate)
        if certificate.identifies_clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=certificate.root)
    except (ssl.SSLError, OSError) as error:
        raise TopologyError(
            f"cannot listen on {host}: {error}; is its key that of the certificate, and are both PEM?"
        ) from None
    return context


def _client_context(root: str | None, certificate: Certificate | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # clients of Arrow Flight take the same certificates without it
    if root is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(cadata=root)
    if certificate is not None and certificate.identifies_clients:
        _show(context, certificate)
    return context


def _show(context: ssl.SSLContext, certificate: Certificate) -> None:
    """Load a certificate and its key. Python reads them from files only, so these are in memory where that exists."""
    content = f"{certificate.key_pem}\n{certificate.chain_pem}".encode()
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("certificate", os.MFD_CLOEXEC)
        try:
            os.write(handle, content)
            context.load_cert_chain(f"/proc/self/fd/{handle}")
        finally:
            os.close(handle)
    else:
        with tempfile.NamedTemporaryFile() as file:  # readable by this user only
            file.write(content)
            file.flush()
            context.load_cert_chain(file.name)
