"""Keys that 64 bits cannot hold: strings, binary, wide decimals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from indexes.kernels.columns import Interval, Keys, frozen
from indexes.kernels.compiled import kernel
from indexes.kernels.ordered_integers import GREATEST, LEAST


@dataclass(frozen=True)
class LongKeys:
    """A column of byte strings that compare, byte by byte, as the values they stand for.

    `lead` is a 64-bit number that never falls as the value rises, so what an index finds by lead alone
    holds every match; rows whose lead equals a bound's are settled by their bytes.

        value        "apple"   "apples and pears"   "apples"   "pear"
        lead (hex)   6170706c65000000  6170706c65732061  6170706c65730000  7065617200000000, minus 2^63
    """

    lead: np.ndarray
    data: np.ndarray
    offsets: np.ndarray
    valid: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "lead", frozen(self.lead, np.int64))
        object.__setattr__(self, "data", frozen(self.data, np.uint8))
        object.__setattr__(self, "offsets", frozen(self.offsets, np.int64))
        if self.valid is not None:
            object.__setattr__(self, "valid", frozen(self.valid, np.bool_))
        if len(self.offsets) != len(self.lead) + 1:
            raise ValueError("offsets needs one entry more than there are keys")

    @classmethod
    def of_bytes(cls, data: np.ndarray, offsets: np.ndarray, valid: np.ndarray | None = None) -> LongKeys:
        """Keys whose lead is their first eight bytes. Cost: O(n)."""
        data, offsets = frozen(data, np.uint8), frozen(offsets, np.int64)
        lead = np.empty(len(offsets) - 1, np.int64)
        _leading_bytes(data, offsets, lead)
        return cls(lead, data, offsets, valid)

    def __len__(self) -> int:
        return len(self.lead)

    def leads(self) -> Keys:
        """The leads as an index takes them."""
        return Keys(self.lead, self.valid)

    def rows(self, part: slice) -> LongKeys:
        """Some of the rows. Cost: O(1)."""
        first, end, step = part.indices(len(self))
        assert step == 1, "consecutive rows"
        valid = None if self.valid is None else self.valid[part]
        return LongKeys(self.lead[part], self.data, self.offsets[first : end + 1], valid)


@dataclass(frozen=True)
class LongInterval:
    """One dimension's bounds for a batch of probe rows; a bound that is None is open to that side.

    The bounds themselves belong to the interval unless `low_open` or `high_open`: byte strings have no
    next neighbour to make a closed bound of. A probe row with a null bound meets nothing, negated or not.
    """

    low: LongKeys | None
    high: LongKeys | None
    low_open: bool = False
    high_open: bool = False
    negated: bool = False

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise ValueError("an interval needs a bound")
        if self.low is not None and self.high is not None and len(self.low) != len(self.high):
            raise ValueError("low and high need the same length")

    def __len__(self) -> int:
        bound = self.low if self.low is not None else self.high
        assert bound is not None
        return len(bound)

    def rows(self, part: slice) -> LongInterval:
        """The intervals of some of the probe rows. Cost: O(1)."""
        low = None if self.low is None else self.low.rows(part)
        high = None if self.high is None else self.high.rows(part)
        return LongInterval(low, high, self.low_open, self.high_open, self.negated)

    def leads(self) -> Interval:
        """An interval of leads that no match lies outside of; negated, one that no match lies inside of. Cost: O(n)."""
        low = np.full(len(self), LEAST) if self.low is None else self.low.lead
        high = np.full(len(self), GREATEST) if self.high is None else self.high.lead
        if self.negated:
            # Only leads strictly between the bounds' are certain to be inside.
            nothing_inside = np.zeros(len(self), np.bool_)
            if self.low is not None:
                nothing_inside |= low == GREATEST
                low = np.where(low == GREATEST, GREATEST, low + 1)
            if self.high is not None:
                nothing_inside |= high == LEAST
                high = np.where(high == LEAST, LEAST, high - 1)
            low, high = np.where(nothing_inside, GREATEST, low), np.where(nothing_inside, LEAST, high)
        for bound in (self.low, self.high):
            if bound is not None and bound.valid is not None:
                nothing = (LEAST, GREATEST) if self.negated else (GREATEST, LEAST)
                low, high = np.where(bound.valid, low, nothing[0]), np.where(bound.valid, high, nothing[1])
        return Interval(low, high, self.negated)


@kernel
def compare_bytes(a: np.ndarray, a_begin: int, a_end: int, b: np.ndarray, b_begin: int, b_end: int) -> int:
    """-1, 0 or 1 as the first byte string is less than, equal to or greater than the second."""
    for i in range(min(a_end - a_begin, b_end - b_begin)):
        x, y = a[a_begin + i], b[b_begin + i]
        if x != y:
            return -1 if x < y else 1
    lengths = (a_end - a_begin) - (b_end - b_begin)
    return -1 if lengths < 0 else (1 if lengths > 0 else 0)


@kernel
def _leading_bytes(data: np.ndarray, offsets: np.ndarray, lead: np.ndarray) -> None:
    for row in range(lead.size):
        number = np.uint64(0)
        begin = offsets[row]
        length = offsets[row + 1] - begin
        for i in range(8):
            byte = np.uint64(data[begin + i]) if i < length else np.uint64(0)
            number = (number << np.uint64(8)) | byte
        lead[row] = np.int64(number ^ (np.uint64(1) << np.uint64(63)))
