"""Errors of this project as text, so that they cross from one process to another with their type.

Only names of our own error types are looked up, so a peer cannot choose what is built.
"""

from __future__ import annotations

import json

from topology.graph.errors import ERROR_KINDS, InterlaceError

MOST_BYTES = 6000
"""gRPC refuses an answer whose headers exceed 8 KiB in total, and an error travels in one. A long text (a task's
traceback) loses its middle."""


def error_to_text(error: Exception) -> bytes:
    """Return the type and the arguments of an error as JSON."""
    if isinstance(error, InterlaceError) and type(error).__name__ in ERROR_KINDS:
        kind, arguments = type(error).__name__, list(error.args)
    else:
        kind, arguments = "InterlaceError", [f"unexpected {type(error).__name__}: {error}"]
    room = MOST_BYTES
    while True:
        shortened = [_shortened(value, room) if isinstance(value, str) else value for value in arguments]
        content = json.dumps({"kind": kind, "arguments": shortened}).encode()
        if len(content) <= MOST_BYTES or room < 16:
            return content
        room //= 2


def error_from_text(content: bytes, peer: str) -> InterlaceError:
    """Return the error that `peer` sent."""
    try:
        found = json.loads(content)
        return ERROR_KINDS[found["kind"]](*found["arguments"])
    except (ValueError, KeyError, TypeError):
        return InterlaceError(f"{peer} answered with an error that this version does not know")


def _shortened(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    return f"{text[: room // 4]}\n[...]\n{text[-(room - room // 4) :]}"
