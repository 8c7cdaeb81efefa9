"""What is written: groups of records, one for each commit.

    header   56 bytes: version, numbers, lengths and three checksums
    table    JSON: the headers of the records, and where their rows lie in the body
    body     Arrow IPC messages: the rows of all records; before the first rows of a schema, that schema

A group stands for itself: no other is needed to read it. It becomes durable as a whole, because the records of a commit
are acknowledged together. The checksum of the header begins with the name of the segment, so a group that a confused
disk or a person put into another file is not taken for one of that file.

Rows are not copied: Arrow's writer hands over the columns' own buffers, these are summed one by one, and the disk gets
them as a list. Rows with dictionaries are whole IPC streams, because a dictionary may change with every batch.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from topology.durable.disk import Piece
from topology.durable.record import Record

HEADER = struct.Struct("<8sIIQQQIIII")
"""Magic, version, records, number of the group, number of its first record, bytes of the body, bytes of the table,
checksums of body, table and header."""

SUM = struct.Struct("<I")
MAGIC = b"ILGROUP\n"
VERSION = 1
ALIGNMENT = 8
WHOLE_STREAM = -1
"""Stands for the number of a schema where rows bring their own."""

_KNOWN_SCHEMAS = 64


@dataclass(frozen=True)
class Group:
    """A group that can be written any number of times, always as the same bytes."""

    number: int
    first_record: int
    records: int
    pieces: list[Piece]
    nbytes: int


class GroupBuilder:
    """Collects the records of the next commit."""

    def __init__(self, encoder: RowsEncoder) -> None:
        self._encoder = encoder
        self._records: list[str] = []
        self._schemas: list[tuple[pa.Schema, int]] = []
        self._pieces: list[Piece] = []
        self._sum = 0
        self._size = 0
        self._table = 0

    def __len__(self) -> int:
        return len(self._records)

    @property
    def nbytes(self) -> int:
        """About as many bytes as the group will have."""
        return self._size + HEADER.size + self._table if self._records else 0

    def add(self, record: Record) -> None:
        """Add a record; nothing is changed if its header is not JSON."""
        header = json.dumps(dict(record.header), allow_nan=False)
        places = [self._add_rows(rows) for rows in record.batches]
        self._records.append(f"[{header},{json.dumps(places)}]")
        self._table += len(self._records[-1])

    def finished(self, segment: str, number: int, first_record: int, opening: Mapping[str, object] | None) -> Group:
        """Return the group; `opening` describes the segment, and belongs to its first group."""
        schemas = json.dumps([place for _, place in self._schemas])
        table = (
            f'{{"opening":{json.dumps(opening)},"schemas":{schemas},"records":[{",".join(self._records)}]}}'.encode()
        )
        table += b" " * (-len(table) % ALIGNMENT)
        header = HEADER.pack(
            MAGIC, VERSION, len(self._records), number, first_record, self._size, len(table), self._sum,
            zlib.crc32(table), 0,
        )  # fmt: skip
        header = header[: -SUM.size] + SUM.pack(header_sum(segment, header))
        pieces = [header + table, *self._pieces]
        return Group(number, first_record, len(self._records), pieces, HEADER.size + len(table) + self._size)

    def _add_rows(self, rows: pa.RecordBatch) -> tuple[int, int, int]:
        pieces, is_stream = self._encoder.encoded(rows)
        number = WHOLE_STREAM if is_stream else self._schema_number(rows.schema)
        at = self._size
        self._put(pieces)
        return number, at, self._size - at

    def _schema_number(self, schema: pa.Schema) -> int:
        for number, (known, _) in enumerate(self._schemas):
            if schema.equals(known, check_metadata=True):
                return number
        self._schemas.append((schema, self._size))
        message = schema.serialize()
        self._put([message, bytes(-message.size % ALIGNMENT)])
        return len(self._schemas) - 1

    def _put(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            self._sum = zlib.crc32(piece, self._sum)
            self._size += len(piece)
        self._pieces += pieces


def header_sum(segment: str, header: bytes | memoryview) -> int:
    """The checksum of a group's header in a segment."""
    return zlib.crc32(header[: -SUM.size], zlib.crc32(segment.encode()))


class RowsEncoder:
    """Turns rows into the pieces of an IPC message; keeps a writer for each of the last schemas."""

    def __init__(self) -> None:
        self._writers: list[_Writer] = []

    def encoded(self, rows: pa.RecordBatch) -> tuple[list[Piece], bool]:
        """Return the pieces, and whether they are a whole stream instead of one message."""
        writer = self._writer(rows)
        return writer.encoded(rows), writer.has_dictionary

    def _writer(self, rows: pa.RecordBatch) -> _Writer:
        for writer in self._writers:
            if rows.schema.equals(writer.schema, check_metadata=True):
                return writer
        if len(self._writers) == _KNOWN_SCHEMAS:
            del self._writers[0]
        self._writers.append(_Writer(rows))
        return self._writers[-1]


class _Writer:
    """Writes rows of one schema: those with dictionaries as streams of their own, others as messages of one stream."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.schema = rows.schema
        self.has_dictionary = any(_has_dictionary(kind) for kind in rows.schema.types)
        self._taken = _Pieces()
        if not self.has_dictionary:
            self._stream = pa.ipc.new_stream(pa.PythonFile(self._taken, "w"), rows.schema)
            # A stream begins with its schema, which the group has elsewhere: from here on it is rows only.
            self._stream.write_batch(rows.slice(0, 0))
            self._taken.take()

    def encoded(self, rows: pa.RecordBatch) -> list[Piece]:
        if self.has_dictionary:
            with pa.ipc.new_stream(pa.PythonFile(self._taken, "w"), rows.schema) as stream:
                stream.write_batch(rows)
        else:
            self._stream.write_batch(rows)
        return self._taken.take()


class _Pieces:
    """A file that keeps the buffers which Arrow writes to it, as they are."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[Piece] = []

    def write(self, piece: Piece) -> int:
        self._pieces.append(piece)
        return len(piece)

    def take(self) -> list[Piece]:
        """Return what was written since the last call, with zeros up to a multiple of 8."""
        pieces, self._pieces = self._pieces, []
        rest = -sum(map(len, pieces)) % ALIGNMENT
        return [*pieces, bytes(rest)] if rest else pieces

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """It is used again."""


def _has_dictionary(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    if isinstance(kind, pa.BaseExtensionType):
        return _has_dictionary(kind.storage_type)
    return any(_has_dictionary(kind.field(index).type) for index in range(kind.num_fields))
