"""The numbers of one side's live rows, by position, in the form in which they are added and compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from operators.routing.growing_array import GrowingArray
from operators.values.aggregate_types import has_ticks

Bool = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]

ALL_VALID = np.empty(0, np.bool_)


class NumberColumn:
    """Words of one value each (int64, uint64 or float64), or two for decimals: the low one first.

    `valid` is empty as long as every value is there; nulls are 0, and so is NaN, which is null to an aggregate.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self._words = [GrowingArray(dtype) for dtype in word_types(kind)]
        self._valid: GrowingArray | None = None

    @property
    def base(self) -> int:
        """The position of the first row kept."""
        return self._words[0].base

    @property
    def words(self) -> list[Numbers]:
        """The words of the rows kept, as views that are valid until the next change."""
        return [each.values for each in self._words]

    @property
    def valid(self) -> Bool:
        """Which rows have a value; empty if all have."""
        return ALL_VALID if self._valid is None else self._valid.values

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(each.nbytes for each in self._words) + (0 if self._valid is None else self._valid.nbytes)

    def append(self, array: pa.Array) -> None:
        """Add rows at the next positions. Cost: O(rows)."""
        words, valid = words_of(array)
        before = len(self._words[0])
        if valid is not None and self._valid is None:
            self._valid = GrowingArray(np.bool_, self.base)
            self._valid.append(np.ones(before, np.bool_))
        if self._valid is not None:
            self._valid.append(np.ones(len(array), np.bool_) if valid is None else valid)
        for own, more in zip(self._words, words, strict=True):
            own.append(more)

    def drop_before(self, position: int) -> None:
        """Forget the rows below a position."""
        for own in self._words:
            own.drop_before(position)
        if self._valid is not None:
            self._valid.drop_before(position)


def word_types(kind: pa.DataType) -> list[npt.DTypeLike]:
    """The types of the words of a value."""
    if pa.types.is_decimal(kind):
        return [np.int64, np.int64]
    if pa.types.is_floating(kind):
        return [np.float64]
    return [np.uint64] if kind == pa.uint64() else [np.int64]


def words_of(array: pa.Array) -> tuple[list[Numbers], Bool | None]:
    """The words of an array of numbers or times, and which values are there; None if all are."""
    kind = array.type
    if pa.types.is_decimal(kind):
        array = array.cast(pa.decimal128(kind.precision, kind.scale))
        pairs = np.frombuffer(array.buffers()[1], np.int64, 2 * len(array), 16 * array.offset) if len(array) else _NONE
        words, valid = [pairs[::2], pairs[1::2]], _valid(array)
        if valid is not None:
            words = [np.where(valid, word, 0) for word in words]
        return words, valid
    if pa.types.is_float16(kind):
        array = array.cast(pa.float32())
    if pa.types.is_boolean(kind):
        array = array.cast(pa.int8())
    elif has_ticks(kind):
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    valid = _valid(array)
    filled = array if valid is None else array.fill_null(0)
    (dtype,) = word_types(kind)
    values = filled.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
    if pa.types.is_floating(kind):
        lacking = np.isnan(values)
        if lacking.any():
            valid = ~lacking if valid is None else valid & ~lacking
            values = np.where(lacking, 0.0, values)
    return [values], valid


def as_column(values: Numbers, missing: Bool, kind: pa.DataType) -> pa.Array:
    """Words of one value each as a column of a type, the inverse of `words_of`."""
    types = pa.types
    if types.is_floating(kind):
        if types.is_float16(kind):
            return pa.array(values.astype(np.float16), mask=missing)
        return pa.array(values, mask=missing).cast(kind, safe=False)
    if types.is_boolean(kind):
        return pa.array(values != 0, mask=missing)
    whole = pa.array(values, mask=missing)
    if not has_ticks(kind):
        return whole.cast(kind)
    return whole.cast(pa.int32()).view(kind) if kind.bit_width == 32 else whole.view(kind)


_NONE = np.empty(0, np.int64)


def _valid(array: pa.Array) -> Bool | None:
    if not array.null_count:
        return None
    found: Bool = array.is_valid().to_numpy(zero_copy_only=False)
    return found
