"""The selected columns of one side's live rows, by position.

Columns of fixed width are kept as contiguous arrays, so that taking rows is one gather. All others are kept as Arrow
chunks, merged geometrically so that there are few of them. Rows below a position are forgotten when it is dead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from operators.growing_array import GrowingArray

Int64 = npt.NDArray[np.int64]


class PayloadStore:
    """Append rows at consecutive positions, take any, drop the oldest."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._columns = [_column(field.type) for field in schema]
        self._base = 0
        self._end = 0

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(column.nbytes for column in self._columns)

    def append(self, rows: pa.RecordBatch) -> None:
        """Add rows at the next positions."""
        for column, array in zip(self._columns, rows.columns, strict=True):
            column.append(array)
        self._end += rows.num_rows

    def take(self, positions: Int64) -> list[pa.Array]:
        """The selected columns at the given positions. Cost: O(positions) per column."""
        return [column.take(positions) for column in self._columns]

    def take_column(self, name: str, positions: Int64) -> pa.Array:
        """One column at the given positions. Cost: O(positions)."""
        return self._columns[self.schema.get_field_index(name)].take(positions)

    def drop_before(self, position: int) -> None:
        """Forget the rows at positions below `position`."""
        self._base = max(self._base, min(position, self._end))
        for column in self._columns:
            column.drop_before(self._base)


class _Column(ABC):
    @abstractmethod
    def append(self, array: pa.Array) -> None: ...

    @abstractmethod
    def take(self, positions: Int64) -> pa.Array: ...

    @abstractmethod
    def drop_before(self, position: int) -> None: ...

    @property
    @abstractmethod
    def nbytes(self) -> int: ...


class _FixedWidth(_Column):
    """Values as stored, and a validity array from the first null on."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._width = kind.bit_width // 8
        self._values = GrowingArray(np.dtype(f"u{self._width}"))
        self._valid: GrowingArray | None = None

    def append(self, array: pa.Array) -> None:
        if array.null_count and self._valid is None:
            self._valid = GrowingArray(np.bool_)
            self._valid.append(np.ones(self._values.base + len(self._values), dtype=np.bool_))
            self._valid.drop_before(self._values.base)
        data = array.buffers()[1]
        dtype = np.dtype(f"u{self._width}")
        self._values.append(
            np.frombuffer(data, dtype, count=len(array), offset=array.offset * self._width)
            if data is not None and len(array)
            else np.empty(0, dtype)
        )
        if self._valid is not None:
            self._valid.append(array.is_valid().to_numpy(zero_copy_only=False))

    def take(self, positions: Int64) -> pa.Array:
        index = positions - self._values.base if self._values.base else positions
        values = self._values.values.take(index)
        buffers = [None, pa.py_buffer(values)]
        if self._valid is not None:
            valid = self._valid.values.take(index)
            if not valid.all():
                buffers[0] = pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(self._kind, len(values), buffers)

    def drop_before(self, position: int) -> None:
        self._values.drop_before(position)
        if self._valid is not None:
            self._valid.drop_before(position)

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + (self._valid.nbytes if self._valid is not None else 0)


class _Chunks(_Column):
    """Arrow arrays of geometrically falling sizes, oldest first."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._chunks: list[pa.Array] = []
        self._base = 0

    def append(self, array: pa.Array) -> None:
        if not len(array):
            return
        self._chunks.append(array)
        while len(self._chunks) > 1 and len(self._chunks[-2]) <= 2 * len(self._chunks[-1]):
            last = self._chunks.pop()
            self._chunks[-1] = pa.concat_arrays([self._chunks[-1], last])

    def take(self, positions: Int64) -> pa.Array:
        taken = pc.take(pa.chunked_array(self._chunks, self._kind), pa.array(positions - self._base))
        return taken.chunk(0) if taken.num_chunks == 1 else pa.concat_arrays(taken.chunks or [pa.array([], self._kind)])

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


def _column(kind: pa.DataType) -> _Column:
    try:
        width = kind.bit_width
    except ValueError:
        return _Chunks(kind)
    plain = pa.types.is_primitive(kind) and not pa.types.is_boolean(kind)
    return _FixedWidth(kind) if plain and width in (8, 16, 32, 64) else _Chunks(kind)
