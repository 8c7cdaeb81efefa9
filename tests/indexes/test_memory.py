"""Every index reports the memory that it takes, and a sliding window does not grow."""

from __future__ import annotations

import numpy as np
import pytest

from indexes import CATALOGUE, Keys, WindowIndex, make_index
from tests.indexes.measured import bytes_allocated

ROWS, BATCH = 20_000, 1_250


@pytest.mark.thorough
@pytest.mark.parametrize("dimensions", [1, 2])
@pytest.mark.parametrize("name", CATALOGUE)
def test_nbytes_is_what_was_allocated(name: str, dimensions: int) -> None:
    rng = np.random.default_rng(1)
    batches = [[Keys(rng.integers(0, 2**40, BATCH)) for _ in range(dimensions)] for _ in range(3 * ROWS // BATCH)]

    def fill() -> WindowIndex:
        index = make_index(name, window=ROWS, batch=BATCH, dimensions=dimensions)
        for number, batch in enumerate(batches, 1):
            index.insert(batch)
            index.expire(number * BATCH - ROWS)
        return index

    said, kept = bytes_allocated(fill)
    assert said == pytest.approx(kept, rel=0.1)


def slide(name: str, slides: int) -> list[int]:
    """The bytes of a window of 1,000 rows as rows slide through it, one at a time and now and then a few hundred."""
    rng = np.random.default_rng(2)
    keys = rng.integers(0, 2**40, 4096)
    index = make_index(name, window=1000, batch=1)
    end, sizes = 0, []
    for number in range(slides):
        rows = 300 if number % 256 == 255 else 1
        index.insert([Keys(keys[number % 2048 :][:rows])])
        end += rows
        index.expire(end - 1000)
        if number % 64 == 0:
            sizes.append(index.nbytes)
    index.check_invariants()
    return sizes


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_window_that_slides_does_not_grow(name: str) -> None:
    sizes = slide(name, 8_000)
    half = len(sizes) // 2
    assert max(sizes[half:]) <= 1.2 * max(sizes[:half])


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_a_window_that_slides_a_million_times_does_not_grow(name: str) -> None:
    sizes = slide(name, 1_000_000)
    early = len(sizes) // 50
    assert max(sizes[early:]) <= 1.2 * max(sizes[:early])
