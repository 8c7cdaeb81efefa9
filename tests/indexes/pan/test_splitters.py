from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from benchmarks.splitter_figure import adjustments, plot
from indexes.pan.splitters import adjusted, quantiles, spread
from tests.indexes.generated import seeds, values, without_deadline


def exact(count: list[int], lowest: list[int], highest: list[int]) -> list[Fraction]:
    """The paper's formula, one splitter after the other, in exact numbers."""
    partitions, total = len(count), sum(count)
    splitters = []
    for j in range(1, partitions):
        balance = Fraction(total * j, partitions)
        before = Fraction(0)
        for rows, least, greatest in zip(count, lowest, highest, strict=True):
            if before < balance <= before + rows:
                splitters.append(least + (balance - before) / rows * (greatest - least))
            before += rows
    return splitters


def histograms(keys: np.ndarray, splitters: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    partition = np.searchsorted(splitters, keys)
    parts = [keys[partition == p] for p in range(len(splitters) + 1)]
    return (
        np.array([len(part) for part in parts]),
        np.array([part.min() if len(part) else 2**63 - 1 for part in parts]),
        np.array([part.max() if len(part) else -(2**63) for part in parts]),
    )


@without_deadline
@given(seeds)
def test_splitters_are_those_of_the_formula_and_ascend(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = values(rng, np.int64, int(rng.integers(1, 80)))
    count, lowest, highest = histograms(keys, np.sort(values(rng, np.int64, int(rng.integers(0, 9)))))
    found = adjusted(count, lowest, highest)
    assert (found[1:] >= found[:-1]).all()
    formula = exact(count.tolist(), lowest.tolist(), highest.tolist())
    for splitter, expected in zip(found.tolist(), formula, strict=True):
        # A float has 53 bits of the distance within the partition.
        assert abs(splitter - expected) <= 1 + 2**64 * 2.0**-51


def test_the_widest_range_of_keys_does_not_overflow() -> None:
    least, greatest = -(2**63), 2**63 - 1
    found = adjusted(np.array([4, 0]), np.array([least, greatest]), np.array([greatest, least]))
    assert found.tolist() == [-1] or found.tolist() == [0]
    assert adjusted(np.array([0, 1]), np.array([0, greatest]), np.array([0, greatest])).tolist() == [greatest]


def test_one_key_gives_equal_splitters() -> None:
    none = np.zeros(3, np.int64)
    assert adjusted(np.array([9, 0, 0, 0]), np.append(5, none), np.append(5, none)).tolist() == [5, 5, 5]


def test_quantiles_cut_evenly() -> None:
    assert quantiles(np.arange(10, 20), 5).tolist() == [11, 13, 15, 17]
    assert quantiles(np.array([3]), 4).tolist() == [3, 3, 3]


def test_spread_cuts_the_range_evenly() -> None:
    assert spread(4, 0, 100).tolist() == [25, 50, 75]
    assert spread(1).tolist() == []


@pytest.mark.parametrize("partitions", [256, 1024])
def test_three_adjustments_are_enough_for_every_distribution_of_the_paper(partitions: int) -> None:
    rows = 1 << 18
    # Splitters are computed from one subwindow and judged by the next: two samples of N / P rows differ by so much.
    chance = np.sqrt(2 / np.pi) * np.sqrt(2 * partitions / rows)
    for case in adjustments(partitions, rows):
        # Of the rows, a twentieth at most is in another partition than exact quantiles would have it in.
        assert case.error[3] <= case.least_error + chance + 0.1, case
        # The largest partition is less than twice as large as equal keys make it.
        assert case.imbalance[3] <= 2 * case.least_imbalance, case
        # Further adjustments gain nothing.
        assert case.error[3] <= min(case.error[4:]) + 0.05, case


def test_skewed_distributions_do_need_adjustment() -> None:
    by_name = {case.name: case for case in adjustments(256, 1 << 16)}
    assert by_name["view counts"].imbalance[0] > 200
    assert by_name["uniform, 1 mode"].imbalance[0] < 1.5


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    plot(tmp_path / "splitters.svg", 64, 1 << 12)
    drawn = (tmp_path / "splitters.svg").read_text()
    assert drawn.count("<polyline") == 7
    assert "view counts" in drawn
