"""Rows by key: the values of some columns, encoded as numbers in the order of their first appearance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from topology.graph.errors import GroupingError

Codes = npt.NDArray[np.int64]
KeyValue: TypeAlias = Any
"""The value of a key: that of its column, or a tuple where there are several columns; None where there is none."""


def key_codes(component: str, rows: pa.RecordBatch | pa.Table, columns: Sequence[str]) -> Codes:
    """Return a number for each row; rows with equal keys, nulls and NaN included, have equal numbers.

    Keys are numbered from 0 in the order in which they appear.
    """
    codes = np.zeros(rows.num_rows, dtype=np.int64)
    for name in columns:
        if name not in rows.schema.names:
            raise GroupingError(
                f"bolt '{component}' has key '{name}', but its rows have only: {', '.join(rows.schema.names)}"
            )
        column = rows.column(name)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode(null_encoding="encode")
        own = column.indices.fill_null(len(column.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)
        _, first, codes = np.unique(codes * (len(column.dictionary) + 1) + own, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        codes = rank[codes]
    return codes


def key_value(rows: pa.RecordBatch | pa.Table, columns: Sequence[str], row: int) -> KeyValue:
    """Return the key of one row."""
    values = tuple(_one_nan(rows.column(name)[row].as_py()) for name in columns)
    return values[0] if len(values) == 1 else values or None


def groups(component: str, rows: pa.RecordBatch, columns: Sequence[str]) -> Iterator[tuple[KeyValue, pa.RecordBatch]]:
    """Yield each key with its rows, which keep their order; keys come in the order of their first row."""
    codes = key_codes(component, rows, columns)
    if not len(codes):
        return
    counts = np.bincount(codes)
    if len(counts) > 1:
        rows = rows.take(pa.array(np.argsort(codes, kind="stable")))
    start = 0
    for count in counts.tolist():
        yield key_value(rows, columns, start), rows.slice(start, count)
        start += count


def _one_nan(value: Any) -> Any:
    """NaN is not equal to itself, but one object is found in a dict; a state that was read has this one, too."""
    return math.nan if isinstance(value, float) and math.isnan(value) else value
