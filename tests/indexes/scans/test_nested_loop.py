"""The nested loop: blocks, codes and their frames."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import Interval, Keys, LinearScan, Live
from indexes.kernels.ordered_integers import ordered_integers
from indexes.scans.code_frame import TOP, code_of, frame_of, numbers_of
from indexes.scans.nested_loop import NestedLoop
from tests.indexes.generated import FLOATS, INTEGERS, assert_same, seeds, without_deadline


def test_codes_are_those_of_the_example() -> None:
    index = NestedLoop(block_rows=4)
    index.insert([Keys(np.array([30, 10, 20, 40, 70, 50]))])
    np.testing.assert_array_equal(index._codes[0, 0], [43688, 1, 21844, 65532])
    np.testing.assert_array_equal(index._codes[0, 1, :2], [65532, 1])
    found = index.probe([Interval(np.array([18]), np.array([32]))], Live.everything(1))
    np.testing.assert_array_equal(found.positions, [0, 2])


@without_deadline
@given(seeds, st.booleans())
def test_a_code_never_falls_as_the_key_rises(seed: int, floats: bool) -> None:
    rng = np.random.default_rng(seed)
    if floats:
        pool = np.array([*FLOATS, 5e-324, -5e-324, 1.7e308, -1.7e308])
        keys = np.concatenate([pool, rng.normal(0, 10.0 ** rng.integers(-300, 300), 50)])
    else:
        keys = np.concatenate([np.array(INTEGERS), rng.integers(-(2 ** int(rng.integers(1, 63))), 2**40, 50)])
    keys = np.sort(keys)
    numbers = numbers_of(ordered_integers(keys), floats)
    low, scale = frame_of(rng.permutation(numbers)[: int(rng.integers(0, 64))])
    codes = np.array([code_of(number, low, scale) for number in numbers], np.int64)
    assert np.all(np.diff(codes) >= 0)
    assert np.all((codes >= 0) & (codes <= TOP))


@pytest.mark.parametrize("shape", ["uniform", "outliers", "constant", "rising"])
def test_codes_rule_out_nearly_all_that_does_not_match(shape: str) -> None:
    rng = np.random.default_rng(3)
    keys = {
        "uniform": rng.uniform(-1e4, 1e4, 8192),
        "outliers": np.where(rng.random(8192) < 0.01, 1e300, rng.normal(0, 1, 8192)),
        "constant": np.full(8192, 5.0),
        "rising": np.arange(8192) + 1e9,
    }[shape]
    index = NestedLoop(block_rows=1024)
    for at in range(0, 8192, 37):  # in small batches: the frame of a block follows what it holds
        index.insert([Keys(keys[at : at + 37])])
    width = np.ptp(np.quantile(keys, [0.02, 0.98])) / 500
    missed = 0
    for slot in range(8):
        low, scale = index._frames[slot, 0]
        for number in rng.choice(keys, 20) + width:
            codes = index._codes[0, slot].astype(np.int64)
            inside = (codes >= code_of(number, low, scale)) & (codes <= code_of(number + width, low, scale))
            wanted = (keys[slot * 1024 :][:1024] >= number) & (keys[slot * 1024 :][:1024] <= number + width)
            assert np.all(inside[wanted])
            missed += int(np.sum(inside & ~wanted))
    assert missed <= 0.001 * 8192 * 20


@pytest.mark.parametrize("match_rate", [0.0, 0.001, 0.3, 1.0])
def test_full_blocks_and_whole_groups_agree_with_a_linear_scan(match_rate: float) -> None:
    rng = np.random.default_rng(4)
    index, reference = NestedLoop(2, block_rows=512), LinearScan()
    batch = [Keys(rng.integers(0, 10_000, 3000)), Keys(rng.uniform(0, 10_000, 3000))]
    for each in (index, reference):
        each.insert(batch)
    width = int(10_000 * np.sqrt(match_rate))
    for probes in (1, 2, 3, 8, 9, 200):
        x, y = rng.integers(0, 10_000, probes), rng.uniform(0, 10_000, probes)
        bounds = [Interval(x - width, x + width), Interval(y - width, y + width)]
        first = np.sort(rng.integers(0, 1500, probes))
        live = Live(first, first + 1400)
        assert_same(index.probe(bounds, live), reference.probe(bounds, live))


def test_a_window_that_slides_does_not_grow() -> None:
    rng = np.random.default_rng(1)
    index = NestedLoop(block_rows=64)
    sizes = []
    for i in range(2000):
        index.insert([Keys(rng.integers(0, 2**40, 37))])
        index.expire((i + 1) * 37 - 1000)
        sizes.append(index.nbytes)
    assert max(sizes[100:]) <= max(sizes[:100])
    index.expire(2000 * 37)
    index.insert([Keys(np.arange(3))])
    assert index.nbytes < max(sizes) / 4
    index.check_invariants()


def test_nbytes_is_what_was_allocated() -> None:
    rng = np.random.default_rng(2)
    batches = [[Keys(rng.integers(0, 2**40, 5000)), Keys(rng.integers(0, 9, 5000))] for _ in range(30)]

    def fill() -> NestedLoop:
        index = NestedLoop(2)
        for i, batch in enumerate(batches):
            index.insert(batch)
            index.expire((i + 1) * 5000 - 50_000)
        return index

    fill()
    tracemalloc.start()
    index = fill()
    measured, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert measured == pytest.approx(index.nbytes, rel=0.1)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="NestedLoop: dimensions"):
        NestedLoop(0)
    with pytest.raises(ValueError, match="NestedLoop: block_rows"):
        NestedLoop(1, block_rows=0)
    with pytest.raises(ValueError, match="NestedLoop: made for 2 dimensions"):
        NestedLoop(2).insert([Keys(np.arange(3))])
