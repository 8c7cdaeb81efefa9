"""Bearer tokens and the rights they grant.

Tokens are random. They are made anew at every launch, kept in memory only, and never printed. A token grants a set of
rights: a Spark executor, for instance, gets one that may write one stream and nothing else.

An `Authority` keeps only the digests of its tokens. So it can be sent to every worker of a topology: each then checks
all tokens that were issued before, and none can be read from it.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.flight as flight

from topology.flight.errors import to_flight
from topology.graph.errors import AuthenticationError
from topology.handle.endpoint import Secret

MIDDLEWARE = "rights"
_HEADER = "authorization"
_SCHEME = "Bearer "

ACTION_SECONDS = 60.0
"""How long a client waits for the answer to an action."""


class Right(enum.Enum):
    """A right that a token may grant."""

    WRITE = "write"  # send and stage rows of one input, announce its sources, pin its schema
    READ = "read"  # read the results of one sink
    CONTROL = "control"  # commit staged rows of one input, end it
    CHANNEL = "channel"  # deliver messages from task to task; clients never get it


@dataclass(frozen=True)
class Grant:
    """One right on one stream or sink (with an empty name, on the task's channels)."""

    right: Right
    name: str = ""


class Authority:
    """The digests of the tokens of one launch, and the rights of each token."""

    def __init__(self) -> None:
        self._grants: list[tuple[bytes, frozenset[Grant]]] = []

    def issue(self, *grants: Grant) -> Secret:
        """Make a new token with these rights."""
        token = Secret(secrets.token_urlsafe(32))
        self._grants.append((_digest(token), frozenset(grants)))
        return token

    def rights_of(self, token: str) -> frozenset[Grant]:
        """Return the rights of a token, none if it is unknown. Takes as long for a good token as for a bad one."""
        presented = _digest(token)
        rights: frozenset[Grant] = frozenset()
        for known, grants in self._grants:
            if hmac.compare_digest(known, presented):
                rights = grants
        return rights

    def __repr__(self) -> str:
        return f"Authority({len(self._grants)} tokens)"


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


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
