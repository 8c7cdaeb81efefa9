"""Rows as whole Arrow streams, and what their types allow."""

from __future__ import annotations

import pyarrow as pa


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
