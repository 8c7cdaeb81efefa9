"""Rows as whole Arrow streams, alone or with facts about them, and what their types allow.

Facts and rows as bytes, for the snapshots of tasks that hold rows:

    8 bytes   the size of the JSON
    JSON      the facts, and how many batches there are; filled up to a multiple of 8 bytes
    streams   one for each run of batches with the same schema
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

_SIZE = struct.Struct("<Q")
_ALIGNMENT = 8


def embedded(rows: pa.RecordBatch) -> pa.Buffer:
    """Return rows as a complete IPC stream, schema and dictionaries included."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as stream:
        stream.write_batch(rows)
    return out.getvalue()


def extracted(content: pa.Buffer) -> pa.RecordBatch:
    """Return the rows of an IPC stream that `embedded` made."""
    with pa.ipc.open_stream(content) as stream:
        return stream.read_next_batch()


def packed(facts: Mapping[str, Any], batches: Sequence[pa.RecordBatch] = ()) -> bytes:
    """Return facts that JSON can express, and rows, as bytes. Cost: O(bytes)."""
    header = json.dumps([facts, len(batches)], allow_nan=False).encode()
    header += b" " * (-len(header) % _ALIGNMENT)
    out = pa.BufferOutputStream()
    out.write(_SIZE.pack(len(header)))
    out.write(header)
    for schema, run in groupby(batches, key=lambda rows: _Schema(rows.schema)):
        with pa.ipc.new_stream(out, schema.schema) as stream:
            for rows in run:
                stream.write_batch(rows)
    content: bytes = out.getvalue().to_pybytes()
    return content


def unpacked(content: bytes) -> tuple[dict[str, Any], list[pa.RecordBatch]]:
    """The inverse of `packed`. Cost: O(batches): the rows stay where they are."""
    (size,) = _SIZE.unpack_from(content)
    facts, count = json.loads(content[_SIZE.size : _SIZE.size + size])
    rest = pa.BufferReader(pa.py_buffer(content).slice(_SIZE.size + size))
    batches: list[pa.RecordBatch] = []
    while len(batches) < count:
        with pa.ipc.open_stream(rest) as stream:
            batches += stream
    return facts, batches


def is_flat(schema: pa.Schema) -> bool:
    """Whether every column is a plain array, so that batches are joined quickly and in any case."""
    return all(
        kind.num_fields == 0 and not pa.types.is_dictionary(kind) and not isinstance(kind, pa.BaseExtensionType)
        for kind in schema.types
    )


def has_dictionary(kind: pa.DataType) -> bool:
    """Whether a type, or one inside it, is dictionary-encoded."""
    if pa.types.is_dictionary(kind):
        return True
    if isinstance(kind, pa.BaseExtensionType):
        return has_dictionary(kind.storage_type)
    return any(has_dictionary(kind.field(index).type) for index in range(kind.num_fields))


class _Schema:
    """Two are equal if batches of theirs fit in one stream."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Schema) and bool(self.schema.equals(other.schema, check_metadata=True))

    def __hash__(self) -> int:
        return hash(tuple(self.schema.names))
