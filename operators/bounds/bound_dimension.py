"""A dimension bound to the types of its columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import pyarrow as pa

from indexes import Interval, Keys
from operators.bounds.dimension_keys import is_settled_by_keys, keys_of
from operators.protocol.sides import RIGHT
from operators.query.predicate import Dimension
from operators.values.key_types import KeyType


@dataclass(frozen=True)
class BoundDimension(ABC):
    """Computes, for a row of either side, the interval of the other side's keys that match it.

    If it `settles`, keys are leads: an interval holds the key of every match, but also of other rows, so each
    candidate must be settled by evaluating the written comparisons.
    """

    dimension: Dimension
    left: KeyType
    right: KeyType

    def key_type(self, side: int) -> KeyType:
        """The key type of a side."""
        return self.right if side == RIGHT else self.left

    @property
    def negated(self) -> bool:
        """Whether matching keys lie outside the interval."""
        return self.dimension.negated

    @property
    def settles(self) -> bool:
        """Whether candidates must be settled by their values."""
        return not is_settled_by_keys(self.left.arrow, self.right.arrow)

    def keys(self, side: int, array: pa.Array) -> Keys:
        """The keys of a side's column; they do not depend on the other side's type. Cost: O(rows)."""
        return keys_of(self.dimension, side, array)

    @abstractmethod
    def intervals(self, probe_side: int, values: Keys) -> Interval:
        """The other side's keys that match each probe row, as closed intervals.

        An invalid probe row gets an empty interval, or, if the dimension is negated, one that covers everything: either
        way it matches nothing. The arrays may share memory with `values` and with each other: do not write to them.
        """
