import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import Keys, LinearScan, Live, SortedRun, TieredRuns, WindowIndex
from tests.indexes.generated import assert_same, dtypes, intervals, keys, live, seeds, thorough

STEPS = ("insert", "insert", "insert", "probe", "probe", "expire", "restore", "freeze")


@thorough
@given(
    seeds,
    st.integers(1, 4),
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=30),
    st.integers(0, 12),
    st.sampled_from([4, 64, 1 << 17]),
)
def test_any_course_of_events_agrees_with_a_linear_scan(
    seed: int, dimensions: int, steps: list[str], tail_rows: int, largest: int
) -> None:
    rng = np.random.default_rng(seed)
    types = dtypes(rng, dimensions)
    first = int(rng.choice([0, 5, 2**40]))
    index = TieredRuns(dimensions, first_position=first, tail_rows=tail_rows, largest_block=largest)
    reference: WindowIndex = LinearScan(first)
    columns: list[list[Keys]] = []
    end = below = first
    for step in [*steps, "probe"]:
        if step == "insert":
            rows = int(rng.choice([0, 1, 1, 2, 7, 30]))
            batch = [keys(rng, dtype, rows) for dtype in types]
            columns.append(batch)
            index.insert(batch)
            reference.insert(batch)
            end += rows
        elif step == "expire":
            below = int(rng.integers(below, end + 1))
            index.expire(below)
            reference.expire(below)
        elif step == "restore":
            index = TieredRuns.restore(index.snapshot())
            reference = LinearScan.restore(reference.snapshot())
        elif step == "freeze" and below < end:
            since = int(rng.integers(below, end))
            until = int(rng.integers(since + 1, end + 1))
            for d, run in enumerate(index.freeze(since, until)):
                values = np.concatenate([batch[d].values for batch in columns])
                valid = np.concatenate([batch[d].mask() for batch in columns])
                wanted = slice(since - first, until - first)
                expected = SortedRun.of(Keys(values[wanted], valid[wanted]))
                np.testing.assert_array_equal(run.keys, expected.keys)
                np.testing.assert_array_equal(run.order, expected.order)
        elif step == "probe":
            probes = int(rng.choice([0, 1, 3, 40]))
            bounds = intervals(rng, types, probes)
            alive = live(rng, below, end, probes)
            expected_matches = reference.probe(bounds, alive)
            assert_same(index.probe(bounds, alive), expected_matches)
            unordered = index.probe(bounds, alive, ordered=False)
            assert_same(unordered.sorted_by_position(), expected_matches)
            total = len(expected_matches.positions)
            assert_same(index.probe_within(total, bounds, alive), expected_matches)
            if total:
                assert index.probe_within(total - 1, bounds, alive) is None
        index.check_invariants()
        reference.check_invariants()
        assert index.next_position == end


@pytest.mark.parametrize("batch", [1, 3, 100, 700])
def test_blocks_depend_on_row_counts_alone(batch: int) -> None:
    rng = np.random.default_rng(batch)
    wide, narrow = TieredRuns(2), TieredRuns(1)
    for _ in range(60):
        column = Keys(rng.normal(size=batch))
        wide.insert([column, Keys(-column.values)])
        narrow.insert([Keys(np.zeros(batch, np.int64))])
        narrow.expire(0)
    shape = [(block.first_position, block.rows) for block in wide.blocks]
    assert shape == [(block.first_position, block.rows) for block in narrow.blocks]


def test_blocks_stay_few_and_dead_ones_go() -> None:
    index = TieredRuns(1, tail_rows=16, largest_block=1024)
    for position in range(0, 50_000, 50):
        index.insert([Keys(np.arange(position, position + 50))])
        index.expire(position - 2000)
        assert len(index.blocks) <= 3000 // 512 + 10
        assert sum(block.rows for block in index.blocks) <= 2000 + 50 + 1024
    index.check_invariants()


def test_small_inserts_only_fill_the_tail() -> None:
    index = TieredRuns(1, tail_rows=8)
    for value in range(8):
        index.insert([Keys(np.array([value]))])
    assert [block.rows for block in index.blocks] == [8]
    assert index.nbytes > 0
    index.insert([Keys(np.array([8]))])
    assert [(block.first_position, block.rows) for block in index.blocks] == [(0, 9)]


def test_an_index_without_rows_matches_nothing() -> None:
    index = TieredRuns(2)
    rng = np.random.default_rng(0)
    found = index.probe(intervals(rng, [np.int64, np.float64], 3), Live.everything(3))
    assert found.counts().tolist() == [0, 0, 0]
    assert TieredRuns.restore(index.snapshot()).next_position == 0


def test_a_snapshot_is_not_changed_by_later_inserts() -> None:
    index = TieredRuns(1)
    index.insert([Keys(np.array([1, 2, 3]))])
    snapshot = index.snapshot()
    index.expire(3)
    index.insert([Keys(np.array([7, 8, 9]))])
    restored = TieredRuns.restore(snapshot)
    assert restored.blocks[0].runs[0].keys.tolist() == [1, 2, 3]
