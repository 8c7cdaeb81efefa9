"""What is read: the groups of a segment, and where its end is.

A writer that dies leaves a group of which any part may be missing: a *torn tail*, which was never acknowledged and is
cut. A group that is damaged anywhere else was acknowledged, and nothing may pretend that it never was. The difference
shows behind it: a writer begins a group when the one before has been synced, so a bad group with a good header of a
later group behind it was once whole. Where the end is known, because a later segment states it, every group before it
must be whole.

A flipped bit in the very last group before a crash looks like a torn tail. Nothing that one disk holds can tell these
two apart.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from topology.durable.group import HEADER, MAGIC, VERSION, WHOLE_STREAM, header_sum
from topology.durable.record import Record
from topology.graph.errors import DamagedLogError, StoreError


class End(NamedTuple):
    """The end of a segment: how many groups, records and bytes it has."""

    groups: int = 0
    records: int = 0
    nbytes: int = 0


@dataclass(frozen=True)
class ReadGroup:
    """A group whose checksums are right."""

    number: int
    first_record: int
    opening: Mapping[str, Any] | None
    _table: Mapping[str, Any]
    _body: pa.Buffer

    def records(self) -> Iterator[Record]:
        """Decode the records; their rows use the memory that was read."""
        schemas = [pa.ipc.read_schema(self._body.slice(at)) for at in self._table["schemas"]]
        for header, places in self._table["records"]:
            yield Record(header, tuple(self._rows(schemas, *place) for place in places))

    def _rows(self, schemas: list[pa.Schema], schema: int, at: int, size: int) -> pa.RecordBatch:
        message = self._body.slice(at, size)
        if schema != WHOLE_STREAM:
            return pa.ipc.read_record_batch(message, schemas[schema])
        with pa.ipc.open_stream(message) as stream:
            return stream.read_next_batch()


class _Header(NamedTuple):
    records: int
    number: int
    first_record: int
    body: int
    table: int
    body_sum: int
    table_sum: int


def scan(segment: str, content: list[pa.Buffer], until: End | None = None) -> tuple[list[ReadGroup], End]:
    """Return the groups of a segment, and its end: that of its last whole group, or `until`, which must be there."""
    groups: list[ReadGroup] = []
    end = End()
    for index, buffer in enumerate(content):
        at = 0
        while at < buffer.size and (until is None or end.nbytes < until.nbytes):
            found = _group_at(segment, buffer, at, end)
            if found is None:
                if until is None:
                    _check_torn(segment, [buffer.slice(at), *content[index + 1 :]], end)
                    return groups, end
                raise _damaged(segment, end, "a checksum is wrong")
            group, size, records = found
            groups.append(group)
            end = End(end.groups + 1, end.records + records, end.nbytes + size)
            at += size
    if until is not None and end != until:
        raise _damaged(segment, end, f"its end is missing: it had {until.nbytes:,} bytes")
    return groups, end


def _group_at(segment: str, buffer: pa.Buffer, at: int, before: End) -> tuple[ReadGroup, int, int] | None:
    header = _header_at(segment, buffer, at)
    if header is None or (header.number, header.first_record) != (before.groups, before.records):
        return None
    size = HEADER.size + header.table + header.body
    if at + size > buffer.size:
        return None
    table = buffer.slice(at + HEADER.size, header.table)
    body = buffer.slice(at + HEADER.size + header.table, header.body)
    if zlib.crc32(table) != header.table_sum or zlib.crc32(body) != header.body_sum:
        return None
    read = json.loads(table.to_pybytes())
    return ReadGroup(header.number, header.first_record, read["opening"], read, body), size, header.records


def _header_at(segment: str, buffer: pa.Buffer, at: int) -> _Header | None:
    content = buffer.slice(at, min(HEADER.size, buffer.size - at)).to_pybytes()
    if len(content) < HEADER.size or not content.startswith(MAGIC):
        return None
    _, version, records, number, first, body, table, body_sum, table_sum, own = HEADER.unpack(content)
    if own != header_sum(segment, content):
        return None
    if version != VERSION:
        raise StoreError(
            f"{segment} has version {version} of the format, and this program reads {VERSION}: use a newer one"
        )
    return _Header(records, number, first, body, table, body_sum, table_sum)


def _check_torn(segment: str, rest: list[pa.Buffer], end: End) -> None:
    """Raise an error if a later group follows the bad one: then it was whole once."""
    for buffer in rest:
        content = buffer.to_pybytes()
        at = content.find(MAGIC)
        while at >= 0:
            header = _header_at(segment, buffer, at)
            if header is not None and header.number > end.groups:
                raise _damaged(segment, end, "a checksum is wrong, and later groups follow")
            at = content.find(MAGIC, at + 1)


def _damaged(segment: str, end: End, why: str) -> DamagedLogError:
    return DamagedLogError(
        f"{segment} is damaged at byte {end.nbytes:,} (group {end.groups}): {why}. Restore the file from a copy; "
        f"what follows cannot be recovered from this store alone"
    )
