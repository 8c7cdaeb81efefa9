"""The dimensions that are indexed are those that the first rows show to be selective, not those written first."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from indexes import Interval, Keys, Live, PermutationOffsetJoin, SortedRun
from operators import CountWindow, SPOJoin, StreamJoin
from operators.engines.shared.selectivity import SelectivePairs, shares_of
from operators.protocol.element_rows import ElementRows
from topology import LocalRuntime


def _rows(widths: tuple[int, ...], negated: tuple[bool, ...] = (), rows: int = 500, seed: int = 1) -> ElementRows:
    rng = np.random.default_rng(seed)
    keys = [rng.integers(0, 1000, rows) for _ in widths]
    intervals = [
        Interval(key - width, key + width, bool(negated and negated[d]))
        for d, (key, width) in enumerate(zip(keys, widths, strict=True))
    ]
    return ElementRows(0, np.arange(rows), tuple(Keys(key) for key in keys), tuple(intervals), Live.everything(rows))


def test_shares_are_those_of_the_sample() -> None:
    rows = _rows((500, 5, 5), (False, False, True))
    wide, narrow, outside = shares_of(rows.keys, rows.intervals)
    assert wide > 0.5
    assert narrow < 0.02
    assert outside > 0.98
    assert shares_of([Keys(np.empty(0, np.int64))], [rows.intervals[0]]) == [1.0]


def test_the_first_step_with_both_sides_decides_for_good() -> None:
    negated = (True, False, False, False)
    pairs = SelectivePairs(negated)
    assert pairs.pair(0) == (1, 2)
    pairs.observe((_rows((1, 400, 3, 20), negated), None))
    assert pairs.pair(0) == (1, 2)
    pairs.observe((_rows((1, 400, 3, 20), negated), _rows((1, 20, 400, 3), negated, seed=2)))
    # the left rows are asked for by the right ones' intervals, and the other way round
    assert pairs.pair(0) == (3, 1)
    assert pairs.pair(1) == (2, 3)
    pairs.observe((_rows((1, 3, 4, 400), negated), _rows((1, 3, 4, 400), negated, seed=2)))
    assert pairs.pair(0) == (3, 1)


def test_one_dimension_is_its_own_partner() -> None:
    assert SelectivePairs((False,)).pair(0) == (0, 0)


def test_a_permutation_that_is_there_is_used_while_it_is_about_as_good() -> None:
    rng = np.random.default_rng(3)
    columns = [rng.integers(0, 1000, 2000) for _ in range(3)]
    block = PermutationOffsetJoin(0, [SortedRun.of(Keys(column)) for column in columns])
    block.use_permutation(1, 2, block._permutation(1, 2).partner)
    x = rng.integers(0, 1000, 50)
    alike = [Interval(x - 9, x + 9), Interval(x - 10, x + 10), Interval(x - 11, x + 11)]
    block.probe(alike, Live.everything(50))
    assert {tuple(sorted(pair)) for pair in block._permutations} == {(1, 2)}
    block.probe([Interval(x, x), *alike[1:]], Live.everything(50))
    assert (0, 1) in {tuple(sorted(pair)) for pair in block._permutations}


def test_the_plan_and_the_metrics_show_the_choice() -> None:
    rng = np.random.default_rng(4)
    on = "R.a < S.a AND R.b > S.b AND abs(R.c - S.c) <= 3"
    join = StreamJoin("R", "S", on, CountWindow(2000), using=SPOJoin(merge_interval=500), step_rows=1000)
    assert "the two most selective dimensions" in str(join.plan())
    tables = [pa.table({name: rng.integers(0, 1000, 6000) for name in "abc"}) for _ in range(2)]
    with join.launch(LocalRuntime(), sources={"R": ["R"], "S": ["S"]}) as running:
        for name, table in zip("RS", tables, strict=True):
            running.send(name, table.to_batches()[0])
        running.finish()
        found = sum(batch.num_rows for batch in running.results())
        (mutable,) = running.metrics().of("mutable")
        assert mutable.own["left_first_dimension"] == 2.0
        assert mutable.own["right_first_dimension"] == 2.0
    assert found > 0
