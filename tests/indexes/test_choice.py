"""Each kind of join gets its index, and samples are measured correctly."""

import numpy as np
import pytest

from indexes import Interval, Keys
from indexes.catalogue import CATALOGUE, make_index
from indexes.choice import Choice, Observed, Query, choose

CASES = [
    (Query(negations=1), None, "NestedLoop", "no condition is a range"),
    (Query(ranges=1, window=100), None, "NestedLoop", "100 rows"),
    (Query(equalities=1, window=1 << 17), None, "HashIndex", "equality"),
    (Query(equalities=1, ranges=1, window=1 << 17), None, "HashIndex", "filter"),
    (Query(equalities=1), None, "LeveledTrees", "too large to hash"),
    (Query(equalities=1, ranges=1), Observed(matches=5000.0), "RangeTreeWindow", "5,000"),
    (Query(equalities=1, ranges=1, bands=1), Observed(matches=1.0, alone=1e5), "GridIndex", "rectangle"),
    (Query(equalities=1, ranges=1), Observed(matches=1.0, alone=1e5), "TieredRuns", "permutation"),
    (Query(ranges=2), Observed(matches=0.5, alone=5.0), "LeveledTrees", "leaves about 5 rows"),
    (Query(ranges=2), None, "TieredRuns", "permutation"),
    (Query(ranges=2), Observed(matches=10.0), "TieredRuns", "permutation"),
    (Query(ranges=2), Observed(matches=5600.0), "RangeTreeWindow", "5,600"),
    (Query(ranges=2, bands=1), None, "TieredRuns", "permutation"),
    (Query(ranges=2, bands=2), None, "GridIndex", "rectangle"),
    (Query(ranges=3, bands=2, negations=1), Observed(matches=5600.0), "GridIndex", "rectangle"),
    (Query(ranges=2, bands=2, counting=True), None, "GridIndex", "rectangle"),
    (Query(ranges=2, bands=2, counting=True), Observed(matches=5600.0), "RangeTreeWindow", "counted"),
    (Query(ranges=2, counting=True), None, "RangeTreeWindow", "counted"),
    (Query(ranges=1, threads=3), None, "PIMTree", "3 threads"),
    (Query(ranges=1, threads=2), None, "LeveledTrees", "one key"),
    (Query(ranges=1, counting=True), None, "BISort", "subtraction"),
    (Query(ranges=1), None, "LeveledTrees", "one key"),
    (Query(ranges=1), Observed(drifting=True), "LeveledTrees", "drift"),
]


@pytest.mark.parametrize(("query", "observed", "index", "because"), CASES)
def test_each_kind_of_join_has_its_index_and_a_reason(
    query: Query, observed: Observed | None, index: str, because: str
) -> None:
    choice = choose(query, observed)
    assert choice.index == index
    assert because in choice.reason
    assert str(choice) == f"{index}: {choice.reason}"
    dimensions = query.equalities + query.ranges + query.negations
    made = make_index(choice.index, window=query.window, batch=query.batch, dimensions=dimensions)
    made.insert([Keys(np.array([3, 1, 2]))] * dimensions)
    made.check_invariants()


def test_a_sample_shows_matches_and_drift() -> None:
    rng = np.random.default_rng(0)
    uniform = Keys(rng.integers(0, 1000, 2000))
    probes = rng.integers(100, 900, 100)
    band = Interval(probes - 10, probes + 10)
    observed = Observed.of([uniform], [band], 1_000_000)
    assert observed.matches == pytest.approx(21_000, rel=0.1)
    assert not observed.drifting
    rising = Keys(np.sort(uniform.values))
    assert Observed.of([rising], [band], 100).drifting


def test_a_sample_counts_only_rows_that_can_match() -> None:
    half = Keys(np.array([1, 1, 5, 5]), np.array([True, False, True, False]))
    everything = Interval(np.array([0]), np.array([9]))
    floats, low = Keys(np.array([1.0, 1.0, 2.0, 2.0])), Interval(np.array([1.0]), np.array([1.5]))
    assert Observed.of([half, floats], [everything, low], 8) == Observed(matches=4.0, alone=4.0)
    assert Observed.of([half], [everything.rows(slice(0))], 8) == Observed()


def test_indexes_are_made_by_name() -> None:
    for name in CATALOGUE:
        made = make_index(name, window=100, batch=10, first_position=7)
        made.insert([Keys(np.arange(5))])
        made.check_invariants()
    with pytest.raises(ValueError, match="no index is called 'BTree'; choose one of LinearScan"):
        make_index("BTree", window=10)
    with pytest.raises(ValueError, match="IMTree: window must be a whole number of 1 or more, not 0"):
        make_index("IMTree", window=0)


def test_a_choice_reads_as_a_sentence() -> None:
    assert str(Choice("A", "because")) == "A: because"
