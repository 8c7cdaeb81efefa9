"""How calls present tokens, and how servers check them first; `handle/rights` says what tokens grant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow.flight as flight

from topology.flight.errors import to_flight
from topology.graph.errors import AuthenticationError
from topology.handle.rights import Authority, Grant, Right

MIDDLEWARE = "rights"
_HEADER = "authorization"
_SCHEME = "Bearer "

ACTION_SECONDS = 60.0
"""How long a client waits for the answer to an action."""


class Caller(flight.ServerMiddleware):
    """The rights of one call's caller; lives as long as the call."""

    def __init__(self, rights: frozenset[Grant]) -> None:
        self._rights = rights

    def require(self, right: Right, name: str = "") -> None:
        """Raise `AuthenticationError` unless the caller's token grants this right."""
        if Grant(right, name) not in self._rights:
            target = f" '{name}'" if name else ""
            raise AuthenticationError(f"the token does not grant the right to {right.value}{target}")


def token_in(headers: Iterable[tuple[str, str | bytes]]) -> str:
    """Return the token that a call presents; an empty text if it presents none, or several."""
    values = [value for name, value in headers if name.lower() == _HEADER]
    return values[0].removeprefix(_SCHEME) if len(values) == 1 and isinstance(values[0], str) else ""


class TokenCheck(flight.ServerMiddlewareFactory):
    """Refuses every call without a known token. Arrow has read one message by then if the call has only one."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def start_call(self, info: flight.CallInfo, headers: Mapping[str, Sequence[str]]) -> Caller:
        rights = self._authority.rights_of(
            token_in((name, value) for name, given in headers.items() for value in given)
        )
        if not rights:
            raise to_flight(AuthenticationError("the call has no valid token"))
        return Caller(rights)


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
