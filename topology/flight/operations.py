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

_DIGITS = 18
"""The longest number, in digits."""

TAKE_OVER = "take over"
"""The key in the body of the call that opens a feed; the others are columns, with their delays."""

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


def named_parts(path: Path, *names: str) -> Path:
    """Return the path of a call, which must have these parts."""
    if len(path) != len(names) or not all(path):
        raise InputError(f"the call must name: {', '.join(names)}")
    return path


def read_number(where: str, text: str) -> int:
    """Return a number that is not negative; `where` begins the refusal of anything else."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise InputError(f"{where}: '{text[:20]}' is not a number of rows")
    return int(text)


def read_counts(where: str, body: bytes) -> dict[str, int]:
    """Read a JSON object of names and numbers of rows; `where` begins the refusal of anything else."""
    try:
        counts = json.loads(body)
    except (ValueError, RecursionError):
        counts = None
    if not isinstance(counts, dict) or not all(type(count) is int and count >= 0 for count in counts.values()):
        raise InputError(f"{where}: the call must give the rows of each attempt, as a JSON object")
    return counts


def source_metadata(source: str, offset: int | None) -> bytes:
    """The metadata of a batch: the name of its source, and behind a zero byte its offset, if that is given."""
    return source.encode() if offset is None else f"{source}\0{offset}".encode()


def read_source(metadata: bytes) -> tuple[str, int | None]:
    """Read what `source_metadata` wrote; `UnicodeDecodeError` if it is no text."""
    source, marked, offset = metadata.decode().partition("\0")
    return source, read_number(f"source '{source[:80]}'", offset) if marked else None
