"""The segments that a log keeps, and reading them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from topology.durable.names import Epoch, SegmentName, segments_in
from topology.durable.record import Position, Record
from topology.durable.scan import End, scan
from topology.durable.store import Store
from topology.graph.errors import DamagedLogError, StoreError


class KeptSegment(NamedTuple):
    """A segment with its end: what a process wrote behind it after it had lost the log does not count."""

    name: SegmentName
    end: End


def described(epoch: Epoch, before: Sequence[KeptSegment]) -> dict[str, object]:
    """Return the opening of a segment: who writes it, and which segments come before it, with their ends."""
    return {"epoch": str(epoch), "before": [[str(kept.name), *kept.end] for kept in before]}


def before_in(opening: Mapping[str, Any]) -> list[KeptSegment]:
    """The segments before the one that an opening describes."""
    return [KeptSegment(segments_in([name])[0], End(*end)) for name, *end in opening["before"]]


def check_present(store_names: Sequence[str], kept: Sequence[KeptSegment]) -> None:
    """Raise an error if a segment that nobody trimmed is not there."""
    for segment in kept:
        if str(segment.name) not in store_names:
            raise DamagedLogError(
                f"{segment.name} is missing from the store, and nobody trimmed it: restore it from a copy"
            )


def records_of(store: Store, kept: Sequence[KeptSegment], first: int) -> Iterator[tuple[Position, Record]]:
    """Read records in order, from the start record of segment `first` on. Cost: one segment in memory."""
    if all(segment.name.number != first for segment in kept):
        raise StoreError(f"segment {first} is not kept: there are {[segment.name.number for segment in kept]}")
    for segment in kept:
        if segment.name.number < first:
            continue
        try:
            content = store.read(str(segment.name))
        except FileNotFoundError as error:
            raise DamagedLogError(f"{segment.name} is missing from the store: restore it from a copy") from error
        groups, _ = scan(str(segment.name), content, segment.end)
        for group in groups:
            for number, record in enumerate(group.records(), group.first_record):
                yield Position(segment.name.number, number), record
