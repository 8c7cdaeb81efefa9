"""One column of live rows, by position: values of fixed width, byte strings, and Arrow chunks for all other types.

Taking rows costs time proportional to their number and bytes, however many are live. A missing position gives null.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from operators.query.errors import JoinError
from operators.results.gathering import gather_bytes
from operators.results.pair_runs import PairRuns
from operators.results.text_settling import Texts, is_text
from operators.routing.growing_array import GrowingArray
from operators.values.takeable_types import from_takeable, takeable_type, to_takeable
from operators.values.text_keys import leads_of

Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


class PayloadColumn(ABC):
    """Append values at consecutive positions, take any, drop the oldest."""

    @abstractmethod
    def append(self, array: pa.Array) -> None: ...

    @abstractmethod
    def take(self, positions: Int64, missing: Bool | None) -> pa.Array:
        """The values at some positions, null where the position is missing; not all are missing."""

    def take_runs(self, side: int, runs: PairRuns) -> pa.Array:
        """The values of some pairs in which these rows are of a side; there is a pair."""
        return self.take(runs.positions(side), None)

    @abstractmethod
    def drop_before(self, position: int) -> None: ...

    @property
    @abstractmethod
    def nbytes(self) -> int: ...

    def texts(self) -> Texts:
        """The values in place, for types that are `is_text`."""
        raise AssertionError("only text is looked at where it lies")


def payload_column(name: str, kind: pa.DataType) -> PayloadColumn:
    """The holder for a column of a type."""
    if isinstance(kind, pa.BaseExtensionType):
        return _Extension(kind, payload_column(name, kind.storage_type))
    if _fixed_width(kind) is not None:
        return _FixedWidth(kind)
    return _Bytes(name, kind) if is_text(kind) else _Chunks(name, kind)


def _fixed_width(kind: pa.DataType) -> int | None:
    """Bytes per value, for types of fixed width without children; None for others."""
    types = pa.types
    if types.is_boolean(kind):
        return 1
    if types.is_null(kind) or types.is_nested(kind) or types.is_dictionary(kind):
        return None
    try:
        return int(kind.byte_width) or None  # a fixed size of 0 bytes has no buffer to gather from
    except ValueError:
        return None


class _Validity:
    """Which values are not null; an array from the first null on."""

    def __init__(self) -> None:
        self._valid: GrowingArray | None = None

    @property
    def has_nulls(self) -> bool:
        """Whether a null has come."""
        return self._valid is not None

    def append(self, array: pa.Array, base: int, before: int) -> None:
        if array.null_count and self._valid is None:
            self._valid = GrowingArray(np.bool_, base)
            self._valid.append(np.ones(before, dtype=np.bool_))
        if self._valid is not None:
            self._valid.append(array.is_valid().to_numpy(zero_copy_only=False))

    def take(self, index: Int64, missing: Bool | None) -> pa.Buffer | None:
        valid = None if self._valid is None else self._valid.values.take(index)
        if missing is not None:
            valid = ~missing if valid is None else valid & ~missing
        if valid is None or valid.all():
            return None
        return pa.py_buffer(np.packbits(valid, bitorder="little"))

    def drop_before(self, position: int) -> None:
        if self._valid is not None:
            self._valid.drop_before(position)

    @property
    def nbytes(self) -> int:
        return self._valid.nbytes if self._valid is not None else 0


class _FixedWidth(PayloadColumn):
    """Values as stored (booleans as bytes), contiguous, so that taking rows is one gather."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._boolean = pa.types.is_boolean(kind)
        width = _fixed_width(kind)
        self._dtype = np.dtype(f"u{width}" if width in (1, 2, 4, 8) else f"V{width}")
        self._values = GrowingArray(self._dtype)
        self._validity = _Validity()

    def append(self, array: pa.Array) -> None:
        self._validity.append(array, self._values.base, len(self._values))
        if self._boolean:
            array = array.cast(pa.int8())
        data = array.buffers()[1]
        offset = array.offset * self._dtype.itemsize
        self._values.append(
            np.frombuffer(data, self._dtype, count=len(array), offset=offset)
            if data is not None and len(array)
            else np.empty(0, self._dtype)
        )

    def take(self, positions: Int64, missing: Bool | None) -> pa.Array:
        index = _index(positions, self._values.base, missing)
        return self._array(self._values.values.take(index), self._validity.take(index, missing))

    def take_runs(self, side: int, runs: PairRuns) -> pa.Array:
        if self._validity.has_nulls or self._dtype.kind != "u":
            return super().take_runs(side, runs)
        return self._array(runs.gather(side, self._values.values, self._values.base), None)

    def _array(self, values: npt.NDArray[Any], validity: pa.Buffer | None) -> pa.Array:
        rows = len(values)
        if self._boolean:
            values = np.packbits(values, bitorder="little")
        return pa.Array.from_buffers(self._kind, rows, [validity, pa.py_buffer(values)])

    def drop_before(self, position: int) -> None:
        self._values.drop_before(position)
        self._validity.drop_before(position)

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + self._validity.nbytes


class _Bytes(PayloadColumn):
    """Strings and binary: all bytes in one buffer, and where each value begins and ends."""

    def __init__(self, name: str, kind: pa.DataType) -> None:
        self._name = name
        self._kind = kind
        types = pa.types
        self._text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
        self._short = types.is_string(kind) or types.is_binary(kind)
        self._view = types.is_string_view(kind) or types.is_binary_view(kind)
        self._bytes = GrowingArray(np.uint8)
        self._ends = GrowingArray(np.int64)  # one more than there are values: the first begins at the first
        self._ends.append(np.zeros(1, np.int64))
        self._leads: GrowingArray | None = None
        self._validity = _Validity()

    def append(self, array: pa.Array) -> None:
        if not len(array):
            return
        self._validity.append(array, self._ends.base, len(self._ends) - 1)
        if self._view:
            array = array.cast(self._long)
        _, offset_buffer, data = array.buffers()
        dtype = np.dtype(np.int32 if self._short else np.int64)
        offsets = np.frombuffer(offset_buffer, dtype, count=len(array) + 1, offset=array.offset * dtype.itemsize)
        begin, end = int(offsets[0]), int(offsets[-1])
        self._ends.append(offsets[1:].astype(np.int64) + (int(self._ends.values[-1]) - begin))
        if end > begin:
            self._bytes.append(np.frombuffer(data, np.uint8)[begin:end])
        if self._leads is not None:
            held = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
            self._add_leads(held, offsets.astype(np.int64))

    def take(self, positions: Int64, missing: Bool | None) -> pa.Array:
        index = _index(positions, self._ends.base, missing)
        offsets, data = gather_bytes(self._bytes.values, self._ends.values, index, self._bytes.base)
        if self._short:
            if len(data) >= 2**31:
                raise JoinError(
                    f"column {self._name}: one batch of results holds {len(data)} bytes of it, and {self._kind} "
                    f"takes 2 GiB; cast it: table[{self._name!r}].cast({str(self._long)!r})"
                )
            offsets = offsets.astype(np.int32)
        kind = self._long if self._view else self._kind
        buffers = [self._validity.take(index, missing), pa.py_buffer(offsets), pa.py_buffer(data)]
        taken = pa.Array.from_buffers(kind, len(positions), buffers)
        return taken.cast(self._kind) if self._view else taken

    def texts(self) -> Texts:
        if self._leads is None:  # from now on kept up to date
            self._leads = GrowingArray(np.int64, self._ends.base)
            self._add_leads(self._bytes.values, self._ends.values - self._bytes.base)
        return Texts(self._bytes.values, self._ends.values, self._bytes.base, self._ends.base, self._leads.values)

    def _add_leads(self, data: npt.NDArray[np.uint8], offsets: Int64) -> None:
        assert self._leads is not None
        self._leads.append(leads_of(data, offsets))

    def drop_before(self, position: int) -> None:
        self._ends.drop_before(min(position, self._ends.base + len(self._ends) - 1))
        self._bytes.drop_before(int(self._ends.values[0]))
        if self._leads is not None:
            self._leads.drop_before(self._ends.base)
        self._validity.drop_before(position)

    @property
    def nbytes(self) -> int:
        leads = 0 if self._leads is None else self._leads.nbytes
        return self._bytes.nbytes + self._ends.nbytes + self._validity.nbytes + leads

    @property
    def _long(self) -> pa.DataType:
        return pa.large_string() if self._text else pa.large_binary()


class _Extension(PayloadColumn):
    """An extension type, held as its storage type."""

    def __init__(self, kind: pa.BaseExtensionType, storage: PayloadColumn) -> None:
        self._kind = kind
        self._storage = storage

    def append(self, array: pa.Array) -> None:
        self._storage.append(array.storage)

    def take_runs(self, side: int, runs: PairRuns) -> pa.Array:
        return pa.ExtensionArray.from_storage(self._kind, self._storage.take_runs(side, runs))

    def take(self, positions: Int64, missing: Bool | None) -> pa.Array:
        return pa.ExtensionArray.from_storage(self._kind, self._storage.take(positions, missing))

    def drop_before(self, position: int) -> None:
        self._storage.drop_before(position)

    @property
    def nbytes(self) -> int:
        return self._storage.nbytes


class _Chunks(PayloadColumn):
    """Arrow arrays of geometrically decreasing sizes, oldest first."""

    def __init__(self, name: str, kind: pa.DataType) -> None:
        self._name = name
        self._kind = kind
        self._held = takeable_type(kind)
        self._chunks: list[pa.Array] = []
        self._base = 0

    def append(self, array: pa.Array) -> None:
        if not len(array):
            return
        self._chunks.append(to_takeable(array, self._held))
        while len(self._chunks) > 1 and len(self._chunks[-2]) <= 2 * len(self._chunks[-1]):
            try:
                merged = pa.concat_arrays(self._chunks[-2:])
            except pa.ArrowInvalid:  # offsets or the indices of a dictionary would outgrow their type
                break
            self._chunks[-2:] = [merged]

    def take(self, positions: Int64, missing: Bool | None) -> pa.Array:
        index = positions - self._base
        present = index if missing is None else index[~missing]
        starts = np.cumsum([0, *(len(chunk) for chunk in self._chunks)])
        owner = np.searchsorted(starts, present, side="right") - 1
        # Arrow's own take copies all chunks into one first: here each gives its rows, and these are put in order.
        order = np.argsort(owner, kind="stable")
        parts = []
        for number in np.unique(owner).tolist():
            rows = present[owner == number] - starts[number]
            parts.append(pc.take(self._chunks[number], pa.array(rows)))
        taken = self._joined(parts)
        if len(parts) > 1 or missing is not None:
            place = np.empty(len(order), np.int64)
            place[order] = np.arange(len(order))
            if missing is None:
                wanted = pa.array(place)
            else:
                spread = np.zeros(len(positions), np.int64)
                spread[~missing] = place
                wanted = pa.array(spread, mask=missing)
            taken = pc.take(taken, wanted)
        return from_takeable(taken, self._kind)

    def drop_before(self, position: int) -> None:
        while self._chunks and self._base + len(self._chunks[0]) <= position:
            self._base += len(self._chunks[0])
            del self._chunks[0]
        if self._chunks and position - self._base > len(self._chunks[0]) // 2:
            gone = position - self._base
            self._chunks[0] = pa.concat_arrays([self._chunks[0].slice(gone)])  # a copy, to free what is gone
            self._base = position

    @property
    def nbytes(self) -> int:
        return sum(chunk.nbytes for chunk in self._chunks)

    def _joined(self, parts: list[pa.Array]) -> pa.Array:
        try:
            return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        except pa.ArrowInvalid as error:
            raise JoinError(
                f"column {self._name}: one batch of results does not fit its type {self._kind}: {error}; "
                "cast it to a type with wider indices or offsets before the join"
            ) from error


def _index(positions: Int64, base: int, missing: Bool | None) -> Int64:
    index = positions - base if base else positions
    return index if missing is None else np.where(missing, 0, index)
