"""A dimension whose columns' types are known."""

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
    """What a row of either side asks of the other side's keys.

    If it `settles`, keys only lead to values: an interval then holds the key of every match, and of other rows
    too, and each candidate has to be settled by evaluating the comparisons as they are written.
    """

    dimension: Dimension
    left: KeyType
    right: KeyType

    def key_type(self, side: int) -> KeyType:
        """What the keys of a side mean."""
        return self.right if side == RIGHT else self.left

    @property
    def negated(self) -> bool:
        """Whether the keys that match lie outside the interval."""
        return self.dimension.negated

    @property
    def settles(self) -> bool:
        """Whether candidates have to be settled by their values."""
        return not is_settled_by_keys(self.left.arrow, self.right.arrow)

    def keys(self, side: int, array: pa.Array) -> Keys:
        """The keys of a column of a side; they do not depend on the type of the other. Cost: O(rows)."""
        return keys_of(self.dimension, side, array)

    @abstractmethod
    def intervals(self, probe_side: int, values: Keys) -> Interval:
        """The other side's keys that match each probe row, as closed intervals.

        An invalid probe row gets an empty interval, or one that covers everything if the
        dimension is negated: either way it matches nothing. The arrays may be shared with the
        probe's own and with each other: do not write to them.
        """
