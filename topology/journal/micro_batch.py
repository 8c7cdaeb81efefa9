"""The order of the rows of a micro-batch: by event time, and at equal times by their content.

Spark may run a micro-batch again with its rows divided otherwise. So neither partitions nor attempts may reach the
total order: the order here follows from the rows alone, and so does how they are cut into batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topology.graph.event_time import event_times

BATCH_ROWS = 1 << 13
"""The rows of each batch that `in_order` yields, except the last."""

_SORTED = (
    *(pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_date, pa.types.is_time),
    *(pa.types.is_timestamp, pa.types.is_duration, pa.types.is_string, pa.types.is_large_string, pa.types.is_binary),
    *(pa.types.is_large_binary, pa.types.is_fixed_size_binary),
)
"""Types that Arrow sorts, by all their values."""


def in_order(batches: Iterable[pa.RecordBatch], event_time: str | None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all batches, which have one schema, in their order.

    Rows without an event time come last. Rows that are equal in every column may change places: nobody can tell.

    event_time: the column; None: the content alone decides.

    Cost: O(rows log(rows)). At equal times all columns are compared; lists, structs and maps as Python objects.
    """
    given = [rows for rows in batches if rows.num_rows]
    if not given:
        return
    rows = given[0] if len(given) == 1 else pa.concat_batches(given)
    rows = rows.take(pa.array(_order(rows, event_time)))
    for start in range(0, rows.num_rows, BATCH_ROWS):
        yield rows.slice(start, BATCH_ROWS)


def unordered_column(schema: pa.Schema) -> str | None:
    """Return a column whose values Arrow cannot move, so that `in_order` would fail; None if there is none."""
    return next((field.name for field in schema if not _moves(field.type)), None)


def _order(rows: pa.RecordBatch, event_time: str | None) -> npt.NDArray[np.int64]:
    order = np.arange(rows.num_rows)
    same = np.ones(max(0, rows.num_rows - 1), np.bool_)  # whether a row is at the same time as the next
    if event_time is not None:
        times, valid = event_times(rows.column(event_time))
        order = np.argsort(times, kind="stable")
        if valid is not None:
            order = np.concatenate((order[valid[order]], order[~valid[order]]))
        in_turn = times[order]
        same = in_turn[1:] == in_turn[:-1]
        if valid is not None:
            has_time = valid[order]
            same = np.where(has_time[1:], same & has_time[:-1], ~has_time[:-1])
    if not same.any():
        return order
    tied = np.flatnonzero(np.concatenate(([False], same)) | np.concatenate((same, [False])))
    ranks = np.cumsum(np.concatenate(([0], ~same)))[tied]
    order[tied] = order[tied][_by_content(rows.take(pa.array(order[tied])), ranks)]
    return order


def _by_content(rows: pa.RecordBatch, ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Order rows by rank, then by their columns."""
    keys = [pa.array(ranks), *map(_key, rows.columns)]
    names = [str(number) for number in range(len(keys))]
    order = pc.sort_indices(pa.table(keys, names=names), sort_keys=[(name, "ascending") for name in names])
    return order.to_numpy().astype(np.int64)


def _key(column: pa.Array) -> pa.Array:
    """A column whose values differ where those of the given one do, of a type that Arrow sorts."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _key(column.storage)
    if pa.types.is_dictionary(kind):
        return _key(column.dictionary_decode())
    if pa.types.is_floating(kind):  # by their bits: 0.0 and -0.0 differ, and so do NaNs
        return column.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width])
    if not any(is_sorted(kind) for is_sorted in _SORTED):
        return pa.array([repr(value) for value in column.to_pylist()], pa.large_string())
    return column


@cache
def _moves(kind: pa.DataType) -> bool:
    try:
        pa.array([], kind).take(pa.array([], pa.int64()))
    except pa.ArrowException:
        return False
    return True
