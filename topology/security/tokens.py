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
from dataclasses import dataclass

from topology.graph.errors import AuthenticationError
from topology.handle.endpoint import Secret


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


class Caller:
    """The rights of one call's caller."""

    def __init__(self, rights: frozenset[Grant]) -> None:
        self._rights = rights

    def require(self, right: Right, name: str = "") -> None:
        """Raise `AuthenticationError` unless the caller's token grants this right."""
        if Grant(right, name) not in self._rights:
            target = f" '{name}'" if name else ""
            raise AuthenticationError(f"the token does not grant the right to {right.value}{target}")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
