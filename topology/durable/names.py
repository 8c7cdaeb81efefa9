"""The names of what a log keeps in its store; the protocol is in them, so that a listing is enough to follow it.

    epoch-00000002-5f0c…                    a claim: some process has taken the log over, and is its second writer
    segment-000000000007-00000002-5f0c…     the log's seventh segment, written by that process
    kept-000000000005-00000002-5f0c…        it has declared that nothing before segment 5 is needed any more

An epoch is a number and a token that nobody else has. Two processes may take over at once and choose the same number:
the tokens order them. So no store has to offer "create unless it exists", which `pyarrow.fs` does not.
"""

from __future__ import annotations

import re
import secrets
from typing import NamedTuple

_EPOCH = re.compile(r"epoch-(\d{8})-([0-9a-f]{16})")
_SEGMENT = re.compile(r"segment-(\d{12})-(\d{8})-([0-9a-f]{16})")
_KEPT = re.compile(r"kept-(\d{12})-(\d{8})-([0-9a-f]{16})")


class Epoch(NamedTuple):
    """One writer of a log. A later one has a greater epoch, and fences the earlier ones."""

    number: int
    token: str

    @property
    def name(self) -> str:
        """The name of its claim."""
        return f"epoch-{self}"

    def __str__(self) -> str:
        return f"{self.number:08}-{self.token}"


class SegmentName(NamedTuple):
    """A segment: its number in the log, and who wrote it."""

    number: int
    epoch: Epoch

    def __str__(self) -> str:
        return f"segment-{self.number:012}-{self.epoch}"


class KeptMark(NamedTuple):
    """The statement of a writer that nothing before a segment is needed any more."""

    segment: int
    epoch: Epoch

    def __str__(self) -> str:
        return f"kept-{self.segment:012}-{self.epoch}"


def new_token() -> str:
    """Return a token that nobody else has."""
    return secrets.token_hex(8)


def epochs_in(names: list[str]) -> list[Epoch]:
    """The claims among some names, in order."""
    found = (_EPOCH.fullmatch(name) for name in names)
    return sorted(Epoch(int(match[1]), match[2]) for match in found if match)


def segments_in(names: list[str]) -> list[SegmentName]:
    """The segments among some names, in the order of their numbers."""
    found = (_SEGMENT.fullmatch(name) for name in names)
    return sorted(SegmentName(int(match[1]), Epoch(int(match[2]), match[3])) for match in found if match)


def kept_in(names: list[str]) -> list[KeptMark]:
    """The marks of trimming among some names, in order."""
    found = (_KEPT.fullmatch(name) for name in names)
    return sorted(KeptMark(int(match[1]), Epoch(int(match[2]), match[3])) for match in found if match)
