"""The columns that flow into and out of an index: keys, intervals, live ranges, matches.

Arrays become contiguous and read-only on the way in, for two reasons. Threads and segments share them, so nothing
may write to them. And Numba compiles a kernel again for every combination of writable and read-only arguments, so
one kind of array means one compilation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from indexes.kernels.compiled import kernel

EVERYWHERE = np.iinfo(np.int64).max
_INT64 = np.dtype(np.int64)
_KEY_TYPES = (np.dtype(np.float64), _INT64)


def frozen(array: np.ndarray, dtype: type | np.dtype | None = None) -> np.ndarray:
    """A contiguous read-only view of `array`; a copy only if layout or type require one."""
    flags = array.flags
    if flags.c_contiguous and (dtype is None or array.dtype == dtype):
        if not flags.writeable:
            return array
        view = array.view()
    else:
        view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def _frozen_keys(array: np.ndarray) -> np.ndarray:
    if array.dtype not in _KEY_TYPES:
        raise TypeError(f"keys and bounds are int64 or float64, not {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"a key column has one axis, not {array.ndim}")
    return frozen(array)


@dataclass(frozen=True)
class Keys:
    """One dimension's key column of consecutive rows. An invalid row never matches."""

    values: np.ndarray
    valid: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _frozen_keys(self.values))
        if self.valid is not None:
            if self.valid.shape != self.values.shape:
                raise ValueError("valid needs one flag per key")
            object.__setattr__(self, "valid", frozen(self.valid, np.bool_))

    @classmethod
    def of(cls, array: np.ndarray) -> Keys:
        """Keys of a plain column; NaN becomes invalid. Cost: O(n)."""
        values = np.asarray(array)
        if values.dtype.kind == "f":
            values = values.astype(np.float64, copy=False)
            missing = np.isnan(values)
            return cls(values, ~missing if missing.any() else None)
        return cls(values.astype(np.int64, copy=False))

    @classmethod
    def joined(cls, parts: Sequence[Keys]) -> Keys:
        """The keys of consecutive parts as one column. Cost: O(rows); a single part is not copied."""
        if len(parts) == 1:
            return parts[0]
        some_invalid = any(part.valid is not None for part in parts)
        valid = np.concatenate([part.mask() for part in parts]) if some_invalid else None
        return cls(np.concatenate([part.values for part in parts]), valid)

    def __len__(self) -> int:
        return len(self.values)

    def mask(self) -> np.ndarray:
        """Validity as an array, even if all keys are valid. Cost: O(n)."""
        return np.ones(len(self), np.bool_) if self.valid is None else self.valid


@dataclass(frozen=True)
class Interval:
    """One dimension's closed bounds [low, high] for a batch of probe rows, in the keys' own type.

    An interval with low > high is empty. With `negated`, the dimension matches every valid key outside the
    interval. A probe row whose own value is null must match nothing, so it has an empty interval or, if negated,
    one that holds every key. Bounds are never NaN.
    """

    low: np.ndarray
    high: np.ndarray
    negated: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", _frozen_keys(self.low))
        object.__setattr__(self, "high", _frozen_keys(self.high))
        if self.low.shape != self.high.shape or self.low.dtype != self.high.dtype:
            raise ValueError("low and high need the same length and type")

    @cached_property
    def inner(self) -> tuple[Any, Any]:
        """The greatest low and the least high bound of at least one probe row. Cost: O(n), once."""
        return self.low.max().item(), self.high.min().item()

    def rows(self, part: slice) -> Interval:
        """The intervals of some of the probe rows. Cost: O(1)."""
        return Interval(self.low[part], self.high[part], self.negated)

    def __len__(self) -> int:
        return len(self.low)


@dataclass(frozen=True)
class Live:
    """The positions [start, end) that each probe row may meet; none if start >= end."""

    start: np.ndarray
    end: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", frozen(self.start, _INT64))
        object.__setattr__(self, "end", frozen(self.end, _INT64))
        if self.start.shape != self.end.shape:
            raise ValueError("start and end need the same length")

    @cached_property
    def extent(self) -> tuple[int, int, int, int]:
        """Least and greatest `start`, least and greatest `end` of at least one probe row. Cost: O(n), once."""
        return int(self.start.min()), int(self.start.max()), int(self.end.min()), int(self.end.max())

    @classmethod
    def everything(cls, probes: int) -> Live:
        """All positions, for each of `probes` rows. Cost: O(probes)."""
        return cls(np.zeros(probes, np.int64), np.full(probes, EVERYWHERE, np.int64))

    def rows(self, part: slice) -> Live:
        """The live ranges of some of the probe rows. Cost: O(1)."""
        return Live(self.start[part], self.end[part])

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Matches:
    """Compressed rows: probe row i met positions[offsets[i]:offsets[i + 1]]. Both are int64."""

    offsets: np.ndarray
    positions: np.ndarray

    @classmethod
    def empty(cls, probes: int) -> Matches:
        """No match for any of `probes` rows. Cost: O(probes)."""
        return cls(np.zeros(probes + 1, np.int64), np.empty(0, np.int64))

    @classmethod
    def concat_by_row(cls, parts: Sequence[Matches]) -> Matches:
        """Concatenate the matches of the same probe rows: for each row, part after part in the given order.

        The result is ordered if every part is ordered and the parts follow each other by position.
        Cost: O(parts * probes + matches).
        """
        assert parts, "the number of probe rows is unknown without a part"
        filled = [part for part in parts if len(part.positions)]
        if len(filled) <= 1:
            return filled[0] if filled else parts[0]
        offsets = filled[0].offsets + filled[1].offsets
        for part in filled[2:]:
            offsets += part.offsets
        positions = np.empty(offsets[-1], np.int64)
        cursor = offsets[:-1].copy()
        for part in filled:
            _append_rows(frozen(part.offsets), frozen(part.positions), cursor, positions)
        return cls(offsets, positions)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def counts(self) -> np.ndarray:
        """Matches per probe row. Cost: O(probes)."""
        return np.diff(self.offsets)

    def probe_rows(self) -> np.ndarray:
        """The probe row of each position. Cost: O(probes + matches)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.counts())

    def sorted_by_position(self) -> Matches:
        """The same matches with positions ascending within each row. Cost: O(matches * log matches)."""
        order = np.lexsort((self.positions, self.probe_rows()))
        return Matches(self.offsets, self.positions[order])


@kernel
def _append_rows(offsets: np.ndarray, positions: np.ndarray, cursor: np.ndarray, target: np.ndarray) -> None:
    for row in range(cursor.size):
        place = cursor[row]
        for source in range(offsets[row], offsets[row + 1]):
            target[place] = positions[source]
            place += 1
        cursor[row] = place
