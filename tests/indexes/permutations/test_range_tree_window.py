from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import Interval, Keys, LinearScan, Live, WindowIndex
from indexes.permutations.pair_trees import PairTrees
from indexes.permutations.permutation_offset import PermutationOffsetJoin
from indexes.permutations.range_tree_window import RangeTreeWindow
from tests.indexes.generated import assert_same, dtypes, intervals, keys, live, seeds, without_deadline

STEPS = ("insert", "insert", "insert", "probe", "probe", "expire", "restore")


def positive(bounds: list[Interval]) -> list[Interval]:
    return [Interval(bound.low, bound.high) for bound in bounds]


@contextmanager
def trees_in_use(rng: np.random.Generator) -> Iterator[None]:
    """Blocks as small as the tests' would never grow trees: here most do, and use them."""

    def mostly(*_: Any) -> bool:
        return bool(rng.random() < 0.7)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PermutationOffsetJoin, "suits_short", False)
        patch.setattr(PermutationOffsetJoin, "_tree_suits", mostly)
        patch.setattr(PairTrees, "worth_counting", mostly)
        yield


def assert_agree(index: WindowIndex, reference: WindowIndex, bounds: list[Interval], alive: Live) -> None:
    expected = reference.probe(bounds, alive)
    assert_same(index.probe(bounds, alive), expected)
    assert_same(index.probe(bounds, alive, ordered=False).sorted_by_position(), expected)
    counts = index.count(bounds, alive)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts, expected.counts())
    total = len(expected.positions)
    assert_same(index.probe_within(total, bounds, alive), expected)
    if total:
        assert index.probe_within(total - 1, bounds, alive) is None


@settings(without_deadline, max_examples=120)
@given(
    seeds,
    st.sampled_from([1, 2, 2, 2, 3]),
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=30),
    st.integers(0, 5),
    st.sampled_from([1, 3, 8]),
    st.sampled_from([8, 40, 1 << 20]),
    st.booleans(),
)
def test_any_course_of_events_agrees_with_a_linear_scan(
    seed: int, dimensions: int, steps: list[str], tail_rows: int, cut_rows: int, largest: int, eager: bool
) -> None:
    rng = np.random.default_rng(seed)
    types = dtypes(rng, dimensions)
    first = int(rng.choice([0, 5, 2**40]))
    index = RangeTreeWindow(
        dimensions, first_position=first, tail_rows=tail_rows, cut_rows=cut_rows, largest_block=largest
    )
    reference: WindowIndex = LinearScan(first)
    end = below = first
    for step in [*steps, "probe"]:
        if step == "insert":
            rows = int(rng.choice([0, 1, 1, 2, 7, 30, 100]))
            batch = [keys(rng, dtype, rows) for dtype in types]
            index.insert(batch)
            reference.insert(batch)
            end += rows
        elif step == "expire":
            below = int(rng.integers(below, end + 1))
            index.expire(below)
            reference.expire(below)
        elif step == "restore":
            index = RangeTreeWindow.restore(index.snapshot())
            reference = LinearScan.restore(reference.snapshot())
        elif step == "probe":
            probes = int(rng.choice([0, 1, 3, 40]))
            bounds = intervals(rng, types, probes)
            alive = live(rng, below, end, probes)
            if eager:
                bounds = positive(bounds)
                with trees_in_use(rng):
                    assert_agree(index, reference, bounds, alive)
            assert_agree(index, reference, bounds, alive)
        index.check_invariants()
        assert index.next_position == end


def test_blocks_stay_few_and_small_where_the_window_begins_and_ends() -> None:
    rng = np.random.default_rng(1)
    index = RangeTreeWindow(2, tail_rows=16, cut_rows=64)
    for position in range(0, 60_000, 100):
        index.insert([Keys(rng.normal(size=100)), Keys(rng.normal(size=100))])
        below = position + 100 - 5000
        index.expire(below)
        blocks = index.blocks
        assert len(blocks) <= 24
        assert sum(block.rows for block in blocks) <= 5000 + 64
        if blocks[0].first_position < below:
            assert blocks[0].rows <= 64
        assert all(block.rows <= 64 + 16 for block in blocks if block.end_position > position)
    index.check_invariants()


@pytest.mark.parametrize("cut_rows", [1, 2, 5])
def test_wherever_the_window_begins_no_live_row_is_lost(cut_rows: int) -> None:
    rows = 40
    everything = [Interval(np.array([0]), np.array([rows]))] * 2
    for begins in range(rows + 1):
        index = RangeTreeWindow(2, tail_rows=0, cut_rows=cut_rows)
        for part in (slice(0, rows - 3), slice(rows - 3, rows)):
            index.insert([Keys(np.arange(rows)[part]), Keys(np.arange(rows)[part])])
        for below in (begins // 2, begins):
            index.expire(below)
        index.check_invariants()
        alive = Live(np.array([begins]), np.array([rows]))
        assert index.probe(everything, alive).positions.tolist() == list(range(begins, rows))
        assert index.count(everything, alive).tolist() == [rows - begins]


def test_memory_does_not_grow_as_the_window_slides() -> None:
    rng = np.random.default_rng(2)
    index = RangeTreeWindow(2, tail_rows=16, cut_rows=64)
    infinite = np.full(50, np.inf)
    most = [0, 0]
    for step in range(400):
        index.insert([Keys(rng.normal(size=50)), Keys(rng.normal(size=50))])
        end = index.next_position
        index.expire(end - 4000)
        bounds = [Interval(rng.normal(size=50), infinite), Interval(-infinite, rng.normal(size=50))]
        alive = Live(np.full(50, max(end - 4000, 0)), np.full(50, end))
        counts = index.count(bounds, alive)
        np.testing.assert_array_equal(counts, index.probe(bounds, alive, ordered=False).counts())
        most[step // 200] = max(most[step // 200], index.nbytes)
    assert most[1] <= 1.1 * most[0]


@pytest.mark.parametrize(
    "options",
    [
        {"dimensions": 0},
        {"first_position": -1},
        {"tail_rows": -1},
        {"cut_rows": 0},
        {"cut_rows": 9, "largest_block": 8},
        {"largest_block": 2**30},
    ],
)
def test_senseless_parameters_are_refused_by_name(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="RangeTreeWindow"):
        RangeTreeWindow(**{"dimensions": 2} | options)
