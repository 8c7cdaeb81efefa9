"""The least or greatest value at the matches of each row, by the place of the match that has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from indexes import Matches, frozen, kernel
from operators.protocol.columns import Int64

Bool = npt.NDArray[np.bool_]
NONE = -1


def extreme_places(matches: Matches, values: npt.NDArray[Any], valid: Bool, base: int, *, greatest: bool) -> Int64:
    """For each row the place in `values` of its least or greatest match; NONE if it has none that is valid.

    Of equal values the first place counts. `valid` is empty if all are. Cost: O(rows + matches).
    """
    places = np.empty(len(matches), np.int64)
    _extreme_places(frozen(matches.offsets), frozen(matches.positions), base, values, valid, greatest, places)
    return places


@kernel
def _extreme_places(
    offsets: Int64,
    positions: Int64,
    base: int,
    values: npt.NDArray[Any],
    valid: Bool,
    greatest: bool,
    places: Int64,
) -> None:
    for row in range(places.size):
        best = -1
        for at in range(offsets[row], offsets[row + 1]):
            place = positions[at] - base
            if valid.size != 0 and not valid[place]:
                continue
            value = values[place]
            if best < 0 or value == values[best]:
                best = place if best < 0 else min(best, place)
            elif (value > values[best]) == greatest:
                best = place
        places[row] = best
