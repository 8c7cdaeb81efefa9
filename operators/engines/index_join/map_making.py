"""Divides the keys of both sides among elements, so that all have equal work, from a sample of the rows.

RecPart (arXiv 2004.06101) divides the space of all attributes of a band join, by a sample, so that the most loaded part
has little more than its share. Here one attribute is divided, the one with which the most loaded element has the
least to do: where bands are narrow beside the range of keys, every border costs few rows that are sent twice. RecPart
knows all rows before. Here the newest stand for those to come, so a division that stays even when keys drift, by
hashes or by blocks, is taken before one that is a little better now.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes import Interval
from operators.engines.index_join.block_map import BlockMap
from operators.engines.index_join.division_map import ROW_OF_MATCHES, DivisionMap
from operators.engines.index_join.key_sample import KeySample
from operators.engines.index_join.side_map import SLOTS, Coordinate, SideMap, coordinates
from operators.protocol.sides import LEFT, RIGHT

STEADY = 1.1
"""A division that stays even when keys drift may give the busiest element so many times the least work."""

BLOCKS = (64, 16, 4)
"""Blocks of an element in the range of keys: many, so that each element has its part where keys are dense; or fewer,
which intervals leave more seldom."""

FREQUENT = 0.1
"""A key with so much of an element's work may be dealt to two elements."""

SLIVER = 0.05
"""An element takes no part of a frequent key that is less of its work than this."""


@np.errstate(over="ignore", invalid="ignore")
def best_map(sample: KeySample, dimensions: Sequence[tuple[int, bool]], elements: int) -> DivisionMap:
    """The division whose most loaded element has the least work; if need be one that deals rows by position.

    dimensions: those whose keys may decide, and whether they are equalities.
    """
    steady: list[DivisionMap | None] = []
    others: list[DivisionMap | None] = []
    for dimension, is_point in dimensions:
        if is_point:
            steady.append(DivisionMap.start([(dimension, True)], elements))
            others.append(_divided(sample, dimension, True, elements))
        steady += [_in_blocks(sample, dimension, elements, blocks) for blocks in BLOCKS]
        others.append(_divided(sample, dimension, False, elements))
    in_turn = DivisionMap.start([], elements)
    work, best = _least(sample, [*others, in_turn])
    steady_work, steadiest = _least(sample, steady)
    return (steadiest if steady_work <= STEADY * work else best) or in_turn


def _least(sample: KeySample, divisions: Sequence[DivisionMap | None]) -> tuple[float, DivisionMap | None]:
    """The division whose busiest element has the least work, with that work."""
    found = [(each.forecast(sample).busiest, each) for each in divisions if each is not None]
    return min(found, key=lambda each: each[0], default=(np.inf, None))


def _in_blocks(sample: KeySample, dimension: int, elements: int, blocks: int) -> DivisionMap | None:
    """So many blocks for each element in the range of the sampled keys; None if these are not numbers with a range."""
    keys, others = _meeting(sample, dimension)
    finite = np.isfinite(keys) & np.isfinite(others)
    if not finite.any():
        return None
    lefts, rights = keys[finite].astype(np.float64), others[finite].astype(np.float64)
    least, most = np.quantile(lefts, [0.02, 0.98])
    width = (most - least) / (blocks * elements)
    width = max(1.0, np.round(width)) if keys.dtype == np.int64 else width
    # the right key in the middle of what a left key meets is a linear function of it
    middle, other = lefts.mean(), rights.mean()
    steepness = ((lefts - middle) * (rights - other)).sum() / max(((lefts - middle) ** 2).sum(), 1e-300)
    steepness = np.round(steepness) if abs(steepness - np.round(steepness)) < 1e-6 else steepness
    origin = float(np.median(rights - steepness * lefts))
    if not (width > 0 and steepness and np.isfinite([width, steepness, origin, 1 / (steepness * width)]).all()):
        return None
    left = BlockMap(dimension, elements, float(width))
    return DivisionMap((left, BlockMap(dimension, elements, float(width), float(steepness), origin)))


def _divided(sample: KeySample, dimension: int, hashed: bool, elements: int) -> DivisionMap | None:
    """Divide one dimension. Rows of both sides that may meet have coordinates of the left side in common."""
    places, weights = [], []
    for side in (LEFT, RIGHT):
        if sample.keys[side]:
            keys, asked = sample.keys[side][dimension], sample.intervals[side][dimension]
            if side == LEFT or hashed:
                place, known = keys.values, keys.mask()
            else:
                place, known = _middles(asked)
                known = known & keys.mask()
            weight = sample.rows[side] * (1 + sample.matches(side, dimension) / ROW_OF_MATCHES)
            places.append(coordinates(place[known], Coordinate.HASHED if hashed else Coordinate.RISING))
            weights.append(weight[known])
    if not sum(map(len, places)):
        return None
    bounds, dealt = _cells(np.concatenate(places), np.concatenate(weights), elements)
    if hashed:
        side_map = SideMap(dimension, Coordinate.HASHED, elements, bounds, dealt)
        return DivisionMap((side_map, side_map))
    left = SideMap(dimension, Coordinate.RISING, elements, bounds, dealt)
    return DivisionMap((left, _image(sample, left)))


def _image(sample: KeySample, left: SideMap) -> SideMap:
    """The cells of right keys that rows of the left side's cells meet, by rows of the sample that are in the middle."""
    d = left.dimension
    lefts, rights = _meeting(sample, d)
    if not len(lefts):
        return SideMap.whole(d, left.elements)
    order = np.argsort(lefts, kind="stable")
    lefts, rights = lefts[order], rights[order]
    half = len(rights) // 2
    falls = half > 0 and float(np.median(rights[:half])) > float(np.median(rights[half:]))
    coordinate = Coordinate.FALLING if falls else Coordinate.RISING
    # with one middle for each key both orders are the same; else the bounds cut off as many rows on both sides
    rights = np.sort(coordinates(rights, coordinate))
    at = np.searchsorted(lefts, left.bounds)
    above = _next(rights[-1:])
    bounds = np.concatenate([rights, above])[np.minimum(at, len(rights))]
    return SideMap(d, coordinate, left.elements, bounds, left.dealt)


def _meeting(sample: KeySample, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Left keys and right keys in the middle of what they meet: each sampled row's own key, and what it asks for."""
    from_left, to_right = [], []
    for side in (LEFT, RIGHT):
        if sample.keys[side]:
            keys, (middles, known) = sample.keys[side][dimension], _middles(sample.intervals[side][dimension])
            known = known & keys.mask()
            own, met = keys.values[known], middles[known]
            from_left.append(own if side == LEFT else met)
            to_right.append(met if side == LEFT else own)
    return np.concatenate(from_left), np.concatenate(to_right)


def _middles(asked: Interval) -> tuple[np.ndarray, np.ndarray]:
    """The middle of each interval, or its end if it has one only; and whether it has any."""
    low, high = asked.low, asked.high
    if low.dtype == np.float64:
        has_low, has_high = np.isfinite(low), np.isfinite(high)
        middle = np.where(low == high, low, low / 2 + high / 2)
    else:
        ends = np.iinfo(np.int64)
        has_low, has_high = low != ends.min, high != ends.max
        middle = (low & high) + ((low ^ high) >> 1)  # without overflow
    middle = np.where(has_low & has_high, middle, np.where(has_low, low, high))
    return middle, (has_low | has_high) & (low <= high)


def _cells(places: np.ndarray, weights: np.ndarray, elements: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds and owners of cells that give every element the same weight.

    A place whose weight reaches over the border between two elements goes to one of them, or if it is frequent,
    becomes a cell of its own that both have.
    """
    distinct, which = np.unique(places, return_inverse=True)
    weight = np.bincount(which, weights=weights)
    ends = np.cumsum(weight) * (elements / weight.sum())
    begins = np.concatenate([[0.0], ends[:-1]])
    begins = np.where(np.ceil(begins) - begins < SLIVER, np.ceil(begins), begins)
    ends = np.maximum(np.where(ends - np.floor(ends) < SLIVER, np.floor(ends), ends), begins)
    owner = np.minimum(((begins + ends) / 2).astype(np.int64), elements - 1)
    frequent = (ends - begins > FREQUENT) & (np.floor(begins) < np.ceil(ends) - 1)
    bounds, dealt = [], []
    slots = (np.arange(SLOTS) + 0.5) / SLOTS
    begun = -1  # the owner of the cell that is open; -1: none is
    for at in np.flatnonzero(frequent | np.diff(owner, prepend=-1).astype(np.bool_) | np.roll(frequent, 1)):
        if frequent[at]:
            shares = begins[at] + slots * (ends[at] - begins[at])
            bounds.append(distinct[at])
            dealt.append(np.minimum(shares.astype(np.int32), elements - 1))
            begun = -1
        elif owner[at] != begun:
            bounds.append(distinct[at])
            dealt.append(np.full(SLOTS, owner[at], np.int32))
            begun = int(owner[at])
    if frequent[0]:  # what is less than the least place seen belongs to its first owner, not to all
        dealt.insert(0, np.full(SLOTS, dealt[0][0], np.int32))
    else:
        bounds.pop(0)
    if frequent[-1]:
        bounds.append(_next(distinct[-1:])[0])
        dealt.append(np.full(SLOTS, dealt[-1][-1], np.int32))
    return np.array(bounds, distinct.dtype), np.array(dealt, np.int32)


def _next(values: np.ndarray) -> np.ndarray:
    """The least value above each."""
    if values.dtype == np.float64:
        return np.nextafter(values, np.inf)
    return np.where(values == np.iinfo(np.int64).max, values, values + 1)
