"""How a Flight call presents its token."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow.flight as flight

_HEADER = "authorization"
_SCHEME = "Bearer "

ACTION_SECONDS = 60.0
"""How long a client waits for the answer to an action."""


def token_in(headers: Iterable[tuple[str, str | bytes]]) -> str:
    """Return the token that a call presents; an empty text if it presents none, or several."""
    values = [value for name, value in headers if name.lower() == _HEADER]
    return values[0].removeprefix(_SCHEME) if len(values) == 1 and isinstance(values[0], str) else ""


class CallOptions(flight.FlightCallOptions):
    """The options of a Flight call; pyarrow's own repr would print the token."""

    def __repr__(self) -> str:
        return "CallOptions(token=...)"

    __str__ = __repr__


def call_options(token: str, **settings: Any) -> CallOptions:
    """Return the options of a Flight call that present `token`. A stream has no deadline."""
    return CallOptions(headers=[(_HEADER.encode(), f"{_SCHEME}{token}".encode())], **settings)


def action_options(token: str, timeout: float = ACTION_SECONDS) -> CallOptions:
    """Return the options of a call that gets one answer, and fails unless it comes in `timeout` seconds."""
    return call_options(token, timeout=timeout)
