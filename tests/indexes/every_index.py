"""Every index of the catalogue, with arguments so small that splits, merges and overflows happen on a few rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from indexes import CATALOGUE, TieredRuns, WindowIndex
from indexes.catalogue import Place, Recipe
from tests.indexes.contract import Make

# Without a tail every batch becomes a block of permutations, and the blocks answer.
EVERY_INDEX: Mapping[str, Recipe] = {
    **CATALOGUE,
    "PermutationOffsetJoin": Recipe(TieredRuns, lambda at: {"tail_rows": 0, "largest_block": 1, **at.of_all}),
}
NAMES = tuple(EVERY_INDEX)


def tiny_index(name: str, rng: np.random.Generator, recipes: Mapping[str, Recipe] = EVERY_INDEX) -> Make:
    """A maker of one index; `rng` draws its tiny arguments and its key."""
    recipe = recipes[name]

    def make(dimensions: int, first: int) -> WindowIndex:
        place = Place(100, 10, dimensions, int(rng.integers(dimensions)), first)
        drawn = {name: values[int(rng.integers(len(values)))] for name, values in recipe.tiny.items()}
        return recipe.make(place, **drawn)

    return make
