"""The compiled scan of young rows finds what the reference finds, in the same order."""

import numpy as np
import pytest

from indexes import Interval, Keys, Live
from indexes.kernels.linear_scan import scan
from indexes.permutations.tail_scan import scan_tail


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("invalid", [False, True])
def test_a_tail_is_scanned_as_the_reference_does(seed: int, invalid: bool) -> None:
    rng = np.random.default_rng(seed)
    rows, probes, first = int(rng.integers(1, 40)), int(rng.integers(0, 30)), int(rng.integers(0, 100))
    columns, intervals = [], []
    for dtype in (np.int64, np.float64, np.int64)[: int(rng.integers(1, 4))]:
        valid = rng.random(rows) < 0.7 if invalid else None
        columns.append(Keys(rng.integers(0, 9, rows).astype(dtype), valid))
        low, high = rng.integers(0, 9, (2, probes)).astype(dtype)
        intervals.append(Interval(low, high, negated=bool(rng.integers(0, 2))))
    start, end = rng.integers(first - 5, first + rows + 5, (2, probes))
    live = Live(start, end)

    found, expected = scan_tail(columns, first, intervals, live), scan(columns, first, intervals, live)

    assert found.offsets.tolist() == expected.offsets.tolist()
    assert found.positions.tolist() == expected.positions.tolist()
