"""Arrow columns as NumPy arrays, without copying."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from indexes import Keys

Int64 = npt.NDArray[np.int64]

NO_ROWS = pa.record_batch([pa.array([], pa.bool_())], names=["nothing"])
"""Carries a batch whose labels say it all."""

_STORAGE = {pa.int64().id: (np.int64, 8), pa.float64().id: (np.float64, 8), pa.int32().id: (np.int32, 4)}


def values_of(array: pa.Array) -> npt.NDArray[np.int64]:
    """The values of an int64 or float64 array as a view of Arrow's memory, nulls or not."""
    code, width = _STORAGE[array.type.id]
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.empty(0, dtype=code)
    return np.frombuffer(data, dtype=code, count=len(array), offset=array.offset * width)


def keys_of(array: pa.Array) -> Keys:
    """The keys of an array; a null is no valid key."""
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    return Keys(values_of(array), valid)
