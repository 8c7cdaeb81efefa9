"""Rows as the memory of their columns, so that a large batch is sent without copying it.

Arrow's own serialisation copies all columns into one buffer. Here each column goes to the socket from where it lies.
Only columns of numbers, and lists of them, travel so: these are what elements send each other. Everything else, and
small batches, are serialised.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeAlias

import pyarrow as pa

LEAST_BYTES = 64 * 1024
"""Smaller batches are copied: that takes less time than looking at each column."""

_ALIGNMENT = 64
_COUNTS = struct.Struct("<Q")

Memory: TypeAlias = "bytes | pa.Buffer"


def is_plain(schema: pa.Schema) -> bool:
    """Whether all columns are fixed-width numbers or large lists of them."""
    return len(schema) > 0 and all(_is_number(_item(kind)) for kind in schema.types)


def memory_of(rows: pa.RecordBatch) -> list[Memory] | None:
    """The memory of all columns after their sizes, aligned; None if it does not lie in a simple way.

    The rows have a plain schema.
    """
    sizes: list[int] = [rows.num_rows]
    memory: list[Memory] = []
    for column in rows.columns:
        parts = _parts(column)
        if parts is None:
            return None
        for part in parts:
            sizes.append(part.size)
            memory.append(part)
            if gap := -part.size % _ALIGNMENT:
                memory.append(bytes(gap))
    head = struct.pack(f"<{len(sizes)}Q", *sizes)
    return [head + bytes(-len(head) % _ALIGNMENT), *memory]


def rows_in(memory: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """The rows whose memory this is."""
    parts = sum(2 if pa.types.is_large_list(kind) else 1 for kind in schema.types)
    rows, *sizes = struct.unpack_from(f"<{1 + parts}Q", memory)
    at = 8 * (1 + parts)
    places: list[pa.Buffer] = []
    for size in sizes:
        at += -at % _ALIGNMENT
        places.append(memory.slice(at, size))
        at += size
    buffers = iter(places)
    return pa.RecordBatch.from_arrays([_column(kind, rows, buffers) for kind in schema.types], schema=schema)


def _column(kind: pa.DataType, rows: int, buffers: Iterator[pa.Buffer]) -> pa.Array:
    if not pa.types.is_large_list(kind):
        return pa.Array.from_buffers(kind, rows, [None, next(buffers)], 0)
    offsets, values = next(buffers), next(buffers)
    item = kind.value_type
    child = pa.Array.from_buffers(item, values.size // (item.bit_width // 8), [None, values], 0)
    return pa.Array.from_buffers(kind, rows, [None, offsets], 0, children=[child])


def _parts(column: pa.Array) -> list[pa.Buffer] | None:
    """The memory of the values of a column without nulls."""
    if column.null_count:
        return None
    if not pa.types.is_large_list(column.type):
        return [_values(column)]
    offsets = column.buffers()[1]
    values = column.values
    if column.offset or offsets is None or values.null_count:
        return None
    offsets = offsets.slice(0, 8 * (len(column) + 1))
    (begin,), (end,) = _COUNTS.unpack_from(offsets), _COUNTS.unpack_from(offsets, 8 * len(column))
    return None if begin else [offsets, _values(values.slice(0, end))]


def _values(column: pa.Array) -> pa.Buffer:
    width = column.type.bit_width // 8
    data = column.buffers()[1]
    return pa.py_buffer(b"") if data is None else data.slice(width * column.offset, width * len(column))


def _item(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_large_list(kind) else kind


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)
