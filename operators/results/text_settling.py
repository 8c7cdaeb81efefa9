"""Compares strings and binary of candidate pairs in place, without gathering them first.

Keys of text only find candidates (`values.text_keys`). Most conditions on text compare two plain columns; those are
decided here, byte by byte in the payload of both sides, at a few nanoseconds a pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from indexes import Matches, frozen, kernel, order_of_bytes
from operators.protocol.sides import LEFT
from operators.query.comparison_operators import COMPARE, ComparisonOperator
from operators.query.predicate import Chain, Dimension

_LESS, _EQUAL, _GREATER = 1, 2, 4
_PASSING: dict[ComparisonOperator, int] = {
    sign: _LESS * compare(0, 1) | _EQUAL * compare(0, 0) | _GREATER * compare(1, 0) for sign, compare in COMPARE.items()
}


class Texts(NamedTuple):
    """A column of one side: row p - first, at position p, is ``data[ends[row] - base : ends[row + 1] - base]``.

    leads: the first eight bytes of each row as a number; where two differ, the rows compare in the same way.
    """

    data: np.ndarray
    ends: np.ndarray
    base: int
    first: int
    leads: np.ndarray


@dataclass(frozen=True)
class TextSettling:
    """The comparisons of one dimension between two text columns, as the orders of the two that pass.

    hashed: whether its keys are hashes, so that candidates are equal except for collisions.
    """

    left: str
    right: str
    passing: int
    hashed: bool

    @classmethod
    def of(cls, dimension: Dimension, left: pa.DataType, right: pa.DataType) -> TextSettling | None:
        """None where values have to be evaluated: for other types, and for values that are not plain columns."""
        if not (is_text(left) and is_text(right)):
            return None
        passing = _LESS | _EQUAL | _GREATER
        for one in dimension.comparisons:
            if not isinstance(one.object, Chain) or not isinstance(one.subject, Chain):
                return None
            if one.subject.operations or one.object.operations:
                return None
            passing &= _PASSING[one.operator]
        return cls(dimension.left, dimension.right, passing, dimension.is_point)

    def settle(self, side: int, first: int, matches: Matches, texts: tuple[Texts, Texts]) -> Matches:
        """The matches that pass, of probe rows of a side from position `first` on; no value among them is null.

        Cost: O(rows + matches), and the bytes that the values have in common.
        """
        offsets = np.empty(len(matches.offsets), np.int64)
        positions = np.empty(len(matches.positions), np.int64)
        passing = self.passing if side == LEFT else _mirrored(self.passing)
        own, other = texts[side], texts[1 - side]
        kept = _settle(
            first - own.first, frozen(own.data), frozen(own.ends), own.base, frozen(own.leads),
            frozen(matches.offsets), frozen(matches.positions),
            frozen(other.data), frozen(other.ends), other.base, frozen(other.leads), other.first,
            passing, offsets, positions,
        )  # fmt: skip
        return matches if kept == len(positions) else Matches(offsets, positions[:kept])


def _mirrored(passing: int) -> int:
    """The orders of (right, left) where these are the orders of (left, right)."""
    less, greater = passing & _LESS, passing & _GREATER
    return passing & _EQUAL | (_GREATER if less else 0) | (_LESS if greater else 0)


def is_text(kind: pa.DataType) -> bool:
    """Whether columns of a type are held as contiguous bytes, so that they can be compared in place."""
    types = pa.types
    strings = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(strings or types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


@kernel
def _settle(
    first_row: int,
    own_data: np.ndarray,
    own_ends: np.ndarray,
    own_base: int,
    own_leads: np.ndarray,
    candidate_offsets: np.ndarray,
    candidates: np.ndarray,
    data: np.ndarray,
    ends: np.ndarray,
    base: int,
    leads: np.ndarray,
    first: int,
    passing: int,
    offsets: np.ndarray,
    positions: np.ndarray,
) -> int:
    """Keep the candidates whose order to the probe row's value passes: 1 for less than, 2 equal, 4 greater."""
    kept = 0
    offsets[0] = 0
    for row in range(candidate_offsets.size - 1):
        a = own_ends[first_row + row] - own_base
        a_size = own_ends[first_row + row + 1] - own_ends[first_row + row]
        lead = own_leads[first_row + row]
        for i in range(candidate_offsets[row], candidate_offsets[row + 1]):
            place = candidates[i] - first
            if leads[place] == lead:
                b, b_size = ends[place] - base, ends[place + 1] - ends[place]
                order = order_of_bytes(own_data, a, a_size, data, b, b_size)
            else:
                order = -1 if lead < leads[place] else 1
            positions[kept] = candidates[i]
            kept += ((2 << order if order >= 0 else 1) & passing) != 0
        offsets[row + 1] = kept
    return kept
