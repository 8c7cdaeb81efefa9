"""Copies a log from one store to another: as a savepoint, and back.

A copy has the same segments with the same names and bytes, because places in a log are numbers of segments, and because
the checksum of a group covers the name of its segment. It is read like the log itself. A mark says when it is whole: a
copy that a crash has cut off would look like a log that ended earlier. What belongs to a log in other stores is copied
by the caller, before the mark is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from topology.durable.kept import KeptSegment
from topology.durable.names import KeptMark, kept_in, segments_in
from topology.durable.scan import scan
from topology.durable.store import Store
from topology.graph.errors import StoreError

WHOLE = "whole"
"""The mark of a copy that is whole."""

UNDER_WAY = "under-way"
"""The mark of a store to which a log is being copied."""


def save(
    source: Store, kept: Sequence[KeptSegment], target: Store, copy_more: Callable[[], None] = lambda: None
) -> None:
    """Copy these segments of a log, up to their ends, while its writer goes on behind them."""
    try:
        for segment in kept:
            name = str(segment.name)
            content = list(_cut(source.read(name), segment.end.nbytes))
            scan(name, content, segment.end)  # damage is not passed on
            _write(target, name, content)
        first, writer = kept[0].name.number, kept[-1].name.epoch
        target.mark(str(KeptMark(first, writer)))
        copy_more()
        target.mark(WHOLE)
    except OSError as error:
        raise _explained("no savepoint was taken", error) from error


def restore(saved: Store, target: Store, copy_more: Callable[[], None] = lambda: None) -> None:
    """Copy a savepoint to a store, unless that has a log already; harmless when repeated, also after a crash."""
    try:
        if segments_in(target.segments()) and UNDER_WAY not in target.marks():
            return
        marks = saved.marks()
        if WHOLE not in marks:
            raise StoreError("there is no savepoint, or it is not whole: give what savepoint() returned")
        target.mark(UNDER_WAY)
        for mark in kept_in(marks):
            target.mark(str(mark))
        for segment in segments_in(saved.segments()):
            _write(target, str(segment), saved.read(str(segment)))
        copy_more()
        target.unmark(UNDER_WAY)
    except OSError as error:
        raise _explained("the savepoint was not restored", error) from error


def copy_objects(source: Store, target: Store, names: Iterable[str]) -> None:
    """Copy objects that were written whole; harmless when repeated."""
    for name in names:
        _write(target, name, source.read(name))


def _explained(what: str, error: OSError) -> StoreError:
    return error if isinstance(error, StoreError) else StoreError(f"{what}: {error}")


def _cut(content: list[pa.Buffer], nbytes: int) -> Iterator[pa.Buffer]:
    """Yield the first bytes of a segment."""
    for buffer in content:
        if nbytes > 0:
            yield buffer.slice(0, min(nbytes, buffer.size))
        nbytes -= buffer.size


def _write(target: Store, name: str, content: list[pa.Buffer]) -> None:
    """Write a segment whole; one that is there already, as a crash leaves it, only if it is not."""
    if name in target.segments():
        if b"".join(target.read(name)) == b"".join(content):
            return
        target.delete(name)
    at = 0
    for number, buffer in enumerate(content):
        target.write(name, number, at, [buffer])
        at += buffer.size
    target.sync(name)
