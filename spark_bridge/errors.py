"""What can go wrong between Spark and a topology, and how it gets from an executor to the driver."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from topology import ERROR_KINDS, ConnectionLostError, Endpoint, InterlaceError


class SparkUnavailableError(InterlaceError, RuntimeError):
    """Spark cannot start here; the message says what to install."""


class UnsupportedSessionError(InterlaceError, TypeError):
    """The session is of a kind that the bridge does not work with."""


class ResultsLostError(InterlaceError, RuntimeError):
    """Results were read by a Spark task that died, or were read before: they cannot be read again."""


_KINDS: dict[str, type[InterlaceError]] = {
    **ERROR_KINDS,
    **{kind.__name__: kind for kind in (SparkUnavailableError, UnsupportedSessionError, ResultsLostError)},
}


def described(error: InterlaceError) -> str:
    """Write an error as text, for the driver; only kinds of our own have a name there."""
    kind = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _KINDS)
    arguments = list(error.args) if kind == type(error).__name__ else [str(error)]
    return json.dumps({"kind": kind, "arguments": arguments})


def restored(text: str) -> InterlaceError:
    """Make the error that `described` wrote."""
    content = json.loads(text)
    return _KINDS[content["kind"]](*content["arguments"])


@contextmanager
def calling(endpoint: Endpoint) -> Iterator[None]:
    """Around an executor's calls: a door that cannot be reached may be that of another machine, so say from where."""
    try:
        yield
    except ConnectionLostError as error:
        raise ConnectionLostError(
            f"{error} (called by a Spark executor on {socket.gethostname()}; {endpoint.location} must be reachable "
            f"from there, and a loopback address is from its own machine only)"
        ) from None
