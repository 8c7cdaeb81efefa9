"""How a call names its operation and the operation's subject.

As the path of a descriptor (`send`, stream, source), as a JSON list in a ticket, or as an action's type with a JSON
list in the first line of its body. Any Arrow client can write these.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

import pyarrow.flight as flight

from topology.graph.errors import InputError

Path = tuple[str, ...]
"""The subject of an operation: names of streams, sources, attempts."""

Operation = TypeVar("Operation")

MAX_SUBJECT_BYTES = 16 * 1024
"""The longest subject of a call; a stream, a source and an attempt need far less."""


def ticket(*parts: str) -> flight.Ticket:
    """Return the ticket that names an operation and its subject."""
    return flight.Ticket(json.dumps(parts).encode())


def action(operation: str, *parts: str, body: bytes = b"") -> flight.Action:
    """Return the action that names an operation and its subject."""
    return flight.Action(operation, json.dumps(parts).encode() + b"\n" + body)


def descriptor(*parts: str) -> flight.FlightDescriptor:
    """Return the descriptor that names an operation and its subject."""
    return flight.FlightDescriptor.for_path(*parts)


def split_path(parts: Sequence[str | bytes] | None) -> tuple[str, Path]:
    """Return the operation and the subject of a path."""
    try:
        operation, *path = [part.decode() if isinstance(part, bytes) else part for part in parts or ()]
    except ValueError:
        raise InputError("the call does not name an operation") from None
    return operation, tuple(path)


def read_list(content: bytes) -> list[str]:
    """Read a JSON list of strings."""
    try:
        parts = json.loads(content) if len(content) <= MAX_SUBJECT_BYTES else None
    except (ValueError, RecursionError):
        parts = None
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise InputError("the call must name its subject as a short JSON list of strings")
    return parts


def find_operation(operations: Mapping[str, Operation], name: str) -> Operation:
    """Return the operation of this name."""
    if name not in operations:
        known = ", ".join(f"'{known}'" for known in operations) or "none"
        raise InputError(f"there is no operation '{name[:40]}' of this kind; operations: {known}")
    return operations[name]
