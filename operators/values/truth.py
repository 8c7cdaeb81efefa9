"""Three-valued logic on columns, as in SQL: a condition is true, false or unknown in each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Truth:
    """The rows where a condition is true, and where it is known (None: everywhere). A true row is known."""

    true: np.ndarray
    known: np.ndarray | None = None

    def __invert__(self) -> Truth:
        return Truth(~self.true if self.known is None else self.known & ~self.true, self.known)

    def __and__(self, other: Truth) -> Truth:
        true = self.true & other.true
        if self.known is None and other.known is None:
            return Truth(true)
        return Truth(true, true | self.false() | other.false())

    def __or__(self, other: Truth) -> Truth:
        true = self.true | other.true
        if self.known is None and other.known is None:
            return Truth(true)
        return Truth(true, true | (self.false() & other.false()))

    def false(self) -> np.ndarray:
        """The rows where the condition is known to be false."""
        return (~self).true

    def to_arrow(self) -> pa.Array:
        """A boolean per row, null where it is unknown."""
        return pa.array(self.true, mask=None if self.known is None else ~self.known)


def validity(array: pa.Array) -> np.ndarray | None:
    """Which values are not null; None if all are."""
    return bools(array.is_valid()) if array.null_count else None


def bools(array: pa.Array) -> np.ndarray:
    """A column of booleans without nulls, a byte each."""
    values: np.ndarray = array.to_numpy(zero_copy_only=False)
    return values


def truth_of(array: pa.Array) -> Truth:
    """A column of booleans as a condition."""
    known = validity(array)
    return Truth(bools(array if known is None else array.fill_null(False)), known)
