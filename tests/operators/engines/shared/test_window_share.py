import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import Keys, LinearScan, Matches
from operators.engines.shared.index_setting import IndexSetting
from operators.engines.shared.window_share import WindowShare
from operators.protocol.sides import LEFT
from tests.indexes.generated import assert_same, intervals, keys, live, seeds

SETTING = IndexSetting("LinearScan", ("range", "range"), (50, 50), 9)


@settings(deadline=None)
@given(seeds, st.integers(1, 5))
def test_all_shares_together_find_what_one_index_finds(seed: int, cores: int) -> None:
    rng = np.random.default_rng(seed)
    whole = LinearScan()
    shares = [WindowShare(LEFT, SETTING, number, cores) for number in range(cores)]
    end = below = 0
    for _ in range(6):
        rows = int(rng.integers(0, 9))
        batch: list[Keys] = [keys(rng, np.int64, rows), keys(rng, np.float64, rows)]
        whole.insert(batch)
        for share in shares:
            share.store(end, batch)
        end += rows
        below = int(rng.integers(below, end + 1))
        probes = int(rng.integers(0, 6))
        bounds = intervals(rng, [np.int64, np.float64], probes)
        alive = live(rng, below, end, probes)
        for share in shares:
            share.expire(below)
            share.check_invariants()
        parts = [share.probe_within(10**6, bounds, alive) for share in shares]
        found = Matches.concat_by_row([part for part in parts if part is not None]).sorted_by_position()
        expected = whole.probe(bounds, alive)
        assert_same(found, expected)
        counts = np.sum([share.count(bounds, alive) for share in shares], axis=0)
        np.testing.assert_array_equal(counts, expected.counts())
    stored = [share.stored for share in shares]
    assert sum(stored) == end
    assert max(stored) - min(stored) <= 1
