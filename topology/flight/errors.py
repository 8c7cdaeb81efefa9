"""Carries this project's errors across Arrow Flight: the client raises the server's error, with type and text.

The type and the arguments travel as text in the error's trailer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pyarrow as pa
import pyarrow.flight as flight

from topology.graph.errors import AuthenticationError, ConnectionLostError, InterlaceError, QuotaError, TlsError
from topology.graph.errors_as_text import error_from_text, error_to_text

_TOO_LARGE = re.compile(r"SERVER: Received message larger than max \((\d+) vs\. (\d+)\)")

REFUSED = "refused"
"""The text of every error beside its trailer."""

_GET_ENDPOINT = "use an endpoint that this topology has given out since it was launched"
_TRANSPORT: list[tuple[re.Pattern[str], type[InterlaceError], str]] = [
    (re.compile(pattern, re.I), kind, explanation)
    for pattern, kind, explanation in [
        (
            r"certificate.(has.)?expired",
            TlsError,
            "shows a certificate that has expired: give the topology a new one (tls=), and check the clocks of both "
            "machines",
        ),
        (
            r"certificate.(is.)?not.yet.valid",
            TlsError,
            "shows a certificate that is not valid yet: check the clocks of both machines",
        ),
        (
            r"certificate.verify.failed",
            TlsError,
            f"shows a certificate that the endpoint's root does not sign: {_GET_ENDPOINT}, or the root that signs "
            f"your own certificate (tls=Tls(root=...))",
        ),
        (
            r"not in peer certificate|hostname verification",
            TlsError,
            "shows a certificate for another address: connect to an address that the certificate names, or use one "
            "that names this address",
        ),
        (
            r"wrong.version.number",
            TlsError,
            f"does not speak TLS, but the endpoint is encrypted (grpc+tls://): {_GET_ENDPOINT}",
        ),
        (
            r"handshake failed",
            TlsError,
            f"and this process do not agree on TLS: {_GET_ENDPOINT}",
        ),
        (
            r"failed to connect.*(socket closed|connection reset|broken pipe)",
            ConnectionLostError,
            f"closed the connection at once: it is stopping, or it expects TLS and the endpoint is not encrypted "
            f"(grpc://); {_GET_ENDPOINT}",
        ),
        (
            r"ping timeout|keepalive|timed out|handshake read failed|handshaker shutdown|too many pings",
            ConnectionLostError,
            "has fallen silent: its process or machine hangs, or the network between is cut",
        ),
        (
            r"dns resolution failed|address lookup failed",
            ConnectionLostError,
            "cannot be found: this machine does not know the host's name",
        ),
    ]
]
"""The transport's words for what went wrong (OpenSSL's and BoringSSL's among them), first match first."""


def to_flight(error: Exception) -> flight.FlightError:
    """Return the Flight error that carries `error` to the client."""
    carrier = flight.FlightUnauthenticatedError if isinstance(error, AuthenticationError) else flight.FlightServerError
    return carrier(REFUSED, error_to_text(error))


def from_flight(error: Exception, peer: str) -> Exception:
    """Return the error of ours that a failed Flight call to `peer` stands for."""
    content = getattr(error, "extra_info", b"")
    if content:
        return error_from_text(content, peer)
    text = _first_sentence(error)
    if isinstance(error, flight.FlightTimedOutError):
        return ConnectionLostError(f"{peer} did not answer in time: its process hangs, or is overloaded")
    if isinstance(error, flight.FlightCancelledError):  # gRPC says no more when a message is larger than a client takes
        return ConnectionLostError(f"{peer} broke off: it has stopped, or it sent more than a client takes at once")
    if isinstance(error, flight.FlightUnavailableError):
        for pattern, kind, explanation in _TRANSPORT:
            if pattern.search(text):
                return kind(f"{peer} {explanation}")
        return ConnectionLostError(f"{peer} cannot be reached: it has stopped, or its process died")
    if (large := _TOO_LARGE.search(str(error))) is not None:
        size, limit = (int(number) for number in large.groups())
        return QuotaError(
            f"{peer} takes messages of at most {limit:,} bytes, not of {size:,}: send fewer rows at once, or raise "
            f"Quotas(message_bytes=...) where the topology is launched"
        )
    return InterlaceError(f"{peer} failed: {text}")


@contextmanager
def raised_by(peer: str) -> Iterator[None]:
    """Use it around calls of a Flight client: raises the server's error."""
    try:
        yield
    except (flight.FlightError, pa.ArrowException, OSError) as error:
        _raise(from_flight(error, peer))


@contextmanager
def sent_to_client() -> Iterator[None]:
    """Use it around the body of a Flight server's method: sends an error to the client."""
    try:
        yield
    except flight.FlightError:
        raise
    except Exception as error:
        _raise(to_flight(error))


def _raise(error: Exception) -> NoReturn:
    raise error from None


def _first_sentence(error: Exception) -> str:
    """The message of the transport without its debugging details."""
    return re.split(r"\.? (?:Detail:|gRPC client debug context:)", str(error))[0]
