"""Answers to rows as elements give them: to consecutive rows, or to those that came to the element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes import Matches, frozen
from operators.results.result_order import Answer


def told(rng: np.random.Generator, origin: int, first: int, matches: Sequence[np.ndarray]) -> Answer:
    """The answer of an element to rows from position `first` on; rows without matches may not have come to it."""
    kept = np.array([number for number, own in enumerate(matches) if len(own) or rng.random() < 0.5], np.int64)
    if rng.random() < 0.5 or not len(kept):
        return Answer(origin, first, _together(matches))
    return Answer(origin, first + int(kept[0]), _together([matches[number] for number in kept]), first + kept)


def _together(matches: Sequence[np.ndarray]) -> Matches:
    return Matches(np.cumsum([0, *map(len, matches)]), frozen(np.concatenate(matches)))
