"""The grid: codes, shapes of data, drift, edges, memory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import GridIndex, Interval, Keys, LinearScan, Live
from indexes.grids.grid_cells import MOST
from indexes.grids.grid_shape import best_shape, most_cells
from indexes.grids.rank_codes import CODES, SEGMENTS, high_code, low_code, rank_code, rank_codes
from indexes.kernels.ordered_integers import GREATEST, LEAST
from tests.indexes.generated import FLOATS, INTEGERS, assert_same, seeds, without_deadline
from tests.indexes.measured import bytes_allocated
from tests.indexes.window_checks import SHAPES, shapes


@without_deadline
@given(seeds, st.booleans(), st.booleans())
def test_a_code_never_falls_as_the_key_rises_and_knows_its_edges(seed: int, falling: bool, rising: bool) -> None:
    rng = np.random.default_rng(seed)
    pool = np.concatenate([np.array(INTEGERS), rng.integers(-(2 ** int(rng.integers(1, 63))), 2**40, 50)])
    sample = np.sort(rng.choice(pool, int(rng.integers(0, 300))))
    codes = rank_codes(sample, falling=falling, rising=rising)
    keys = np.unique(np.concatenate([pool, sample, codes.starts]))
    keys = np.unique(np.concatenate([keys, keys[keys > LEAST] - 1, keys[keys < GREATEST] + 1]))
    found = [rank_code(key, *codes) for key in keys]
    assert all(earlier <= later for earlier, later in pairwise(found))
    assert 0 <= found[0] <= found[-1] < CODES
    for key, expected in zip(keys, found, strict=True):
        code, least = low_code(key, *codes)
        assert code == expected
        assert not least or key == LEAST or rank_code(key - 1, *codes) < code
        code, greatest = high_code(key, *codes)
        assert code == expected
        assert not greatest or key == GREATEST or rank_code(key + 1, *codes) > code


def test_an_interval_of_integers_is_decided_by_its_codes() -> None:
    codes = rank_codes(np.sort(np.random.default_rng(1).integers(0, 5000, 4096)))
    decided = [low_code(key, *codes)[1] and high_code(key, *codes)[1] for key in range(10, 4990)]
    assert np.mean(decided) > 0.95


def test_codes_spread_the_rows_of_any_distribution() -> None:
    rng = np.random.default_rng(1)
    for keys in (rng.integers(0, 10**6, 4096), (np.exp(rng.normal(3, 3, 4096)) * 1000).astype(np.int64)):
        codes = rank_codes(np.sort(keys))
        found = np.array([rank_code(key, *codes) for key in keys])
        counts = np.bincount(found * 16 // CODES, minlength=16)
        assert counts.max() < 2 * 4096 / 16
    assert len(codes.starts) == SEGMENTS


@shapes
@pytest.mark.parametrize("batch", [13, 400])
def test_two_bands_over_a_sliding_window(shape: str, batch: int) -> None:
    rng = np.random.default_rng(1)
    x, y = SHAPES[shape](rng), SHAPES["uniform"](rng).astype(np.float64)
    index, reference = GridIndex(first_look=50), LinearScan()
    for first in range(0, len(x), batch):
        keys = [Keys(x[first : first + batch]), Keys(y[first : first + batch])]
        end = first + len(keys[0])
        below = max(0, end - 700)
        for each in (index, reference):
            each.insert(keys)
            each.expire(below)
        chosen = rng.integers(0, end, 60)
        near, wide = rng.integers(0, 9, 60), rng.integers(0, 300, 60).astype(np.float64)
        low = np.where(x[chosen] < LEAST + 9, LEAST, x[chosen] - near)
        high = np.where(x[chosen] > GREATEST - 9, GREATEST, x[chosen] + near)
        bounds = [Interval(low, high), Interval(y[chosen] - wide, y[chosen] + wide)]
        live = Live(rng.integers(below, end, 60), np.full(60, end))
        expected = reference.probe(bounds, live)
        assert_same(index.probe(bounds, live), expected)
        np.testing.assert_array_equal(index.count(bounds, live), expected.counts())
    index.check_invariants()


def test_the_grid_follows_keys_that_drift_and_intervals_that_change() -> None:
    rng = np.random.default_rng(2)
    index = GridIndex(first_look=1000)
    fullest, shapes_seen = [], []
    for step in range(60):
        x = rng.integers(0, 1000, 1000) + step * 500
        y = rng.uniform(0, 10, 1000)
        index.insert([Keys(x), Keys(y)])
        index.expire((step - 10) * 1000)
        width = (1, 5) if step < 30 else (400, 0.01)
        index.probe([Interval(x, x + width[0]), Interval(y, y + width[1])], Live.everything(1000))
        heads = index._cells.lines[: index._cells.log : 8]
        fullest.append(float(np.mean((heads & 7) == 7)))
        shapes_seen.append(index._shape.shifts)
    # New rows find cells of their own: at most every other is full, though all keys are beyond the earlier ones.
    assert max(fullest[20:]) < 0.5
    # Narrow in x: many cells along x. Narrow in y: many along y.
    assert shapes_seen[29][0] < shapes_seen[29][1]
    assert shapes_seen[-1][0] > shapes_seen[-1][1]
    index.check_invariants()


def test_the_two_most_selective_dimensions_are_gridded() -> None:
    rng = np.random.default_rng(3)
    index, reference = GridIndex(4, first_look=500), LinearScan()
    for _ in range(4):
        keys = [Keys(rng.integers(0, 1000, 1000)) for _ in range(4)]
        index.insert(keys)
        reference.insert(keys)
        x = rng.integers(0, 1000, 200)
        bounds = [Interval(x - 400, x + 400), Interval(x - 5, x + 5), Interval(x, x, True), Interval(x - 9, x + 9)]
        assert_same(index.probe(bounds, Live.everything(200)), reference.probe(bounds, Live.everything(200)))
    assert sorted(index._axes) == [1, 3]


def test_positions_beyond_the_base_are_counted_anew() -> None:
    index = GridIndex(2, first_position=0)
    for first in (0, MOST // 2, MOST - 3, MOST + 5):
        index._next = max(index._next, first)
        index.expire(first)
        index.insert([Keys(np.arange(6)), Keys(np.arange(6))])
        one = Interval(np.array([2]), np.array([4]))
        assert index.probe([one, one], Live.everything(1)).positions.tolist() == [first + 2, first + 3, first + 4]
        index.check_invariants()
    with pytest.raises(ValueError, match=r"GridIndex: a window of .* rows exceeds"):
        index._next += MOST
        index.insert([Keys(np.arange(6)), Keys(np.arange(6))])


def test_one_cell_may_hold_all() -> None:
    index = GridIndex(2)
    for _ in range(20):
        index.insert([Keys(np.full(500, 7)), Keys(np.full(500, np.inf))])
    bounds = [Interval(np.array([7, 8]), np.array([7, 9])), Interval(np.array([0.0, 0.0]), np.array([np.inf, np.inf]))]
    live = Live(np.array([9990, 0]), np.array([20_000, 20_000]))
    assert index.probe(bounds, live).positions.tolist() == list(range(9990, 10_000))
    index.expire(9000)
    assert index.count(bounds, Live.everything(2)).tolist() == [1000, 0]
    index.check_invariants()


def test_shapes_keep_within_their_memory() -> None:
    for rows in (1, 100, 10**5):
        for width in (0, 10, CODES - 1):
            assert best_shape(rows, np.full((2, 4), width)).cells <= most_cells(rows)
    assert best_shape(10**6, np.array([[CODES - 1], [3]])).shifts[0] > 10


def test_nbytes_is_what_was_allocated() -> None:
    rng = np.random.default_rng(4)
    batches = [[Keys(rng.choice(np.array(FLOATS), 4000)), Keys(rng.integers(0, 2**40, 4000))] for _ in range(30)]

    def fill() -> GridIndex:
        index = GridIndex()
        for number, batch in enumerate(batches, 1):
            index.insert(batch)
            index.expire(number * 4000 - 30_000)
        return index

    said, kept = bytes_allocated(fill)
    assert said == pytest.approx(kept, rel=0.1)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="GridIndex: dimensions"):
        GridIndex(0)
    with pytest.raises(ValueError, match="GridIndex: first_look"):
        GridIndex(2, first_look=0)
    with pytest.raises(ValueError, match="GridIndex: made for 2 dimensions"):
        GridIndex(2).insert([Keys(np.arange(3))])
