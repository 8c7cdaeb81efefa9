"""Arrow columns as NumPy arrays and keys, and back, without copying."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indexes import Keys

Int64 = npt.NDArray[np.int64]

NO_ROWS = pa.record_batch([pa.nulls(0, pa.bool_())], names=["nothing"])
"""The rows of a batch whose labels are the whole message."""

_STORAGE = {pa.int64().id: (np.int64, 8), pa.float64().id: (np.float64, 8), pa.int32().id: (np.int32, 4)}


def values_of(array: pa.Array) -> npt.NDArray[np.int64]:
    """The values of an int64, int32 or float64 array as a view of Arrow's memory; nulls have arbitrary values."""
    code, width = _STORAGE[array.type.id]
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.empty(0, dtype=code)
    return np.frombuffer(data, dtype=code, count=len(array), offset=array.offset * width)


def keys_of(array: pa.Array) -> Keys:
    """The keys in an array; a null is not a valid key."""
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    return Keys(values_of(array), valid)


def array_of(keys: Keys) -> pa.Array:
    """Keys as an array with nulls for those that are not valid; not copied where all are."""
    return pa.array(keys.values, mask=None if keys.valid is None else ~keys.valid, from_pandas=False)
