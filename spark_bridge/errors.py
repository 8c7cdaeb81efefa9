"""Errors between Spark and a topology, and how they travel from an executor to the driver."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from topology import ERROR_KINDS, ConnectionLostError, Endpoint, InterlaceError, TaskError, TlsError


class SparkUnavailableError(InterlaceError, RuntimeError):
    """Spark cannot start on this machine; the message says what to install."""


class UnsupportedSessionError(InterlaceError, TypeError):
    """The bridge does not support this kind of Spark session."""


class ResultsLostError(InterlaceError, RuntimeError):
    """The results cannot be read again: the Spark task that read them died, or they have been read before."""


_KINDS: dict[str, type[InterlaceError]] = {
    **ERROR_KINDS,
    **{kind.__name__: kind for kind in (SparkUnavailableError, UnsupportedSessionError, ResultsLostError)},
}


_RAISED = re.compile(r"^(?:[a-z_]+\.)+([A-Za-z]+Error): (.*)$", re.M)
"""The last line of a traceback: module, class and text of an error."""


def described(error: InterlaceError) -> str:
    """Write an error as text for the driver; an error of a user's subclass is written as its nearest class of ours."""
    kind = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _KINDS)
    arguments = list(error.args) if kind == type(error).__name__ else [str(error)]
    return json.dumps({"kind": kind, "arguments": arguments})


def restored(text: str) -> InterlaceError:
    """Return the error that `described` wrote."""
    content = json.loads(text)
    return _KINDS[content["kind"]](*content["arguments"])


def found_in(text: str) -> InterlaceError | None:
    """Return the error of ours that a traceback of a Python worker ends with; Spark shows it as text."""
    found = [match for match in _RAISED.finditer(text) if match[1] in _KINDS]
    if not found:
        return None
    kind = _KINDS[found[-1][1]]
    return None if kind is TaskError else kind(found[-1][2].strip())


@contextmanager
def calling(endpoint: Endpoint) -> Iterator[None]:
    """Use it around an executor's calls: adds the executor's machine to the error of a connection."""
    try:
        yield
    except TlsError as error:
        raise TlsError(f"{error} (called by a Spark executor on {socket.gethostname()})") from None
    except ConnectionLostError as error:
        raise ConnectionLostError(
            f"{error} (called by a Spark executor on {socket.gethostname()}; {endpoint.location} must be reachable "
            f"from there; a loopback address is reachable only from its own machine)"
        ) from None
