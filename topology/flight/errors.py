"""Carries this project's errors across Arrow Flight: the client raises the server's error, with type and text.

The type and the arguments travel as JSON in the error's trailer. gRPC bounds its size, so a long text (a task's
traceback) loses its middle. Only names of our own error types are looked up, so a peer cannot choose what is built.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pyarrow as pa
import pyarrow.flight as flight

from topology.graph.errors import ERROR_KINDS, AuthenticationError, ConnectionLostError, InterlaceError

TRAILER_BYTES = 6000
"""gRPC refuses an answer whose headers exceed 8 KiB in total."""

_REFUSED = "refused"


def to_flight(error: Exception) -> flight.FlightError:
    """Return the Flight error that carries `error` to the client."""
    if isinstance(error, InterlaceError) and type(error).__name__ in ERROR_KINDS:
        kind, arguments = type(error).__name__, list(error.args)
    else:
        kind, arguments = "InterlaceError", [f"unexpected {type(error).__name__}: {error}"]
    carrier = flight.FlightUnauthenticatedError if isinstance(error, AuthenticationError) else flight.FlightServerError
    return carrier(_REFUSED, _trailer(kind, arguments))


def from_flight(error: Exception, peer: str) -> Exception:
    """Return the error of ours that a failed Flight call to `peer` stands for."""
    trailer = getattr(error, "extra_info", b"")
    if trailer:
        try:
            content = json.loads(trailer)
            return ERROR_KINDS[content["kind"]](*content["arguments"])
        except (ValueError, KeyError, TypeError):
            return InterlaceError(f"{peer} answered with an error that this version does not know")
    if isinstance(error, flight.FlightUnavailableError | flight.FlightCancelledError):
        return ConnectionLostError(f"{peer} cannot be reached: it has stopped, or its process died")
    return InterlaceError(f"{peer} failed: {_first_sentence(error)}")


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


def _trailer(kind: str, arguments: list[object]) -> bytes:
    room = TRAILER_BYTES
    while True:
        shortened = [_shortened(value, room) if isinstance(value, str) else value for value in arguments]
        trailer = json.dumps({"kind": kind, "arguments": shortened}).encode()
        if len(trailer) <= TRAILER_BYTES or room < 16:
            return trailer
        room //= 2


def _shortened(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    return f"{text[: room // 4]}\n[...]\n{text[-(room - room // 4) :]}"


def _first_sentence(error: Exception) -> str:
    """The message of the transport without its debugging details."""
    return re.split(r"\.? (?:Detail:|gRPC client debug context:)", str(error))[0]
