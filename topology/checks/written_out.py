"""How large rows are when every value is written out where it is used.

Dictionaries, runs, views and dense unions write a value once and use it many times: a kilobyte may stand for terabytes,
and operators write such values out. The size is computed from the top down, without writing anything: each array is
told how often each of its values is used.
"""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt
import pyarrow as pa

types = pa.types

_one_at_a_time = threading.Lock()
"""The counts may take several times the memory of a message."""

Counts = npt.NDArray[np.float64]
"""How often each value of an array is used; floats, because products of counts overflow integers."""


def repeats_values(kind: pa.DataType) -> bool:
    """Whether a type, or one inside it, can use a value many times."""
    if isinstance(kind, pa.BaseExtensionType):
        return repeats_values(kind.storage_type)
    views = types.is_string_view(kind) or types.is_binary_view(kind) or _is_list_view(kind)
    dense = types.is_union(kind) and kind.mode == "dense"
    if views or dense or types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return True
    return any(repeats_values(kind.field(index).type) for index in range(kind.num_fields))


def written_out_bytes(rows: pa.RecordBatch) -> int:
    """Return the bytes that the columns of a valid batch that repeat values have when written out."""
    with _one_at_a_time:
        return int(sum(_bytes(column, np.ones(len(column))) for column in rows.columns if repeats_values(column.type)))


def _bytes(array: pa.Array, used: Counts) -> float:
    kind = array.type
    if not len(array):
        return 0.0  # an empty union may lack buffers, and asking for its type codes would end the process
    if isinstance(kind, pa.BaseExtensionType):
        return _bytes(array.storage, used)
    if types.is_dictionary(kind):
        indices = array.indices
        valid = np.asarray(indices.is_valid())
        positions = np.asarray(indices.fill_null(0)).astype(np.int64)[valid]
        return _bytes(array.dictionary, _counted(positions, used[valid], len(array.dictionary)))
    if types.is_run_end_encoded(kind):
        ends = np.minimum(np.asarray(array.run_ends).astype(np.int64), len(array))
        totals = np.concatenate(([0.0], np.cumsum(used)))
        return _bytes(array.values, np.diff(totals[ends], prepend=0.0))
    if types.is_union(kind) and kind.mode == "dense":
        codes, offsets = np.asarray(array.type_codes), np.asarray(array.offsets).astype(np.int64)
        total = 0.0
        for index, code in enumerate(kind.type_codes):
            child, chosen = array.field(index), codes == code
            total += _bytes(child, _counted(offsets[chosen], used[chosen], len(child)))
        return total
    if types.is_struct(kind) or types.is_union(kind):
        return sum(_bytes(array.field(index), used) for index in range(kind.num_fields))
    if types.is_fixed_size_list(kind):
        return _bytes(array.values, np.repeat(used, kind.list_size))
    if _is_list_view(kind) or types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        starts, ends = _ranges(array)
        change = np.zeros(len(array.values) + 1)
        np.add.at(change, starts, used)
        np.add.at(change, ends, -used)
        return _bytes(array.values, np.cumsum(change)[:-1]) + 8 * float(used.sum())
    return float((_lengths(array) * used).sum())


def _counted(positions: npt.NDArray[np.int64], used: Counts, length: int) -> Counts:
    return np.bincount(positions, used, length).astype(np.float64)


def _ranges(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    offsets = np.asarray(array.offsets).astype(np.int64)
    if _is_list_view(array.type):
        sizes = np.where(np.asarray(array.is_valid()), np.asarray(array.sizes).astype(np.int64), 0)
        starts = np.where(sizes > 0, offsets[: len(array)], 0)
        return starts, starts + sizes
    return offsets[:-1], offsets[1:]


def _lengths(array: pa.Array) -> npt.NDArray[np.float64]:
    kind = array.type
    if types.is_string_view(kind) or types.is_binary_view(kind):
        views = np.frombuffer(array.buffers()[1], np.int32, 4 * len(array), 16 * array.offset)
        return np.where(np.asarray(array.is_valid()), views[::4], 0) + 16.0
    if types.is_string(kind) or types.is_binary(kind):
        return _differences(array, np.dtype(np.int32))
    if types.is_large_string(kind) or types.is_large_binary(kind):
        return _differences(array, np.dtype(np.int64))
    return np.full(len(array), 0.0 if types.is_null(kind) else kind.bit_width / 8)


def _differences(array: pa.Array, offset: np.dtype[np.int32] | np.dtype[np.int64]) -> npt.NDArray[np.float64]:
    if not len(array):
        return np.zeros(0)
    offsets = np.frombuffer(array.buffers()[1], offset, len(array) + 1, offset.itemsize * array.offset)
    return np.diff(offsets).astype(np.float64)


def _is_list_view(kind: pa.DataType) -> bool:
    return bool(types.is_list_view(kind) or types.is_large_list_view(kind))
