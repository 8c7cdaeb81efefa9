"""The chained index: the contract in both designs, how the chain is made and let go, and memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import Keys
from indexes.trees.breadth_first_tree import BreadthFirstTree
from indexes.trees.chained_index import ChainedIndex, Design
from indexes.trees.linked_tree import LinkedTree
from tests.indexes.contract import STEPS, check_against_linear_scan
from tests.indexes.generated import seeds, without_deadline
from tests.indexes.measured import bytes_allocated

designs = pytest.mark.parametrize("design", ["B-chain", "IB-chain"])


@settings(without_deadline, max_examples=200)
@given(
    seeds,
    st.integers(1, 3),
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=30),
    st.sampled_from([1, 8, 40]),
    st.sampled_from([2, 3, 6]),
    st.sampled_from(["B-chain", "IB-chain"]),
    st.sampled_from([3, 4]),
)
def test_agrees_with_a_linear_scan(
    seed: int, dimensions: int, steps: list[str], window: int, length: int, design: Design, fanout: int
) -> None:
    def make(count: int, first: int) -> ChainedIndex:
        return ChainedIndex(window, length, design, fanout, count, key=seed % count, first_position=first)

    check_against_linear_scan(make, seed, dimensions, steps)


@designs
def test_archived_subindexes_are_what_the_design_says(design: Design) -> None:
    index = ChainedIndex(8, 3, design, 3)
    index.insert([Keys(np.arange(10))])
    archived = LinkedTree if design == "B-chain" else BreadthFirstTree
    assert [type(subindex) for subindex in index.subindexes] == [archived, archived, LinkedTree]
    assert [len(subindex.entries()[0]) for subindex in index.subindexes] == [4, 4, 2]


@designs
def test_the_oldest_subindex_goes_as_a_whole(design: Design) -> None:
    index = ChainedIndex(8, 3, design, 3)
    index.insert([Keys(np.arange(10))])
    held = []
    for below in (3, 4, 7, 8):
        index.expire(below)
        index.check_invariants()
        held.append(len(index.subindexes))
    assert held == [3, 2, 2, 1]


@designs
@pytest.mark.parametrize("length", [2, 3, 8])
def test_a_sliding_window_keeps_its_chain_and_its_memory(design: Design, length: int) -> None:
    rng = np.random.default_rng(0)
    index = ChainedIndex(1000, length, design, 8)
    sizes = []
    for _ in range(400):
        index.insert([Keys(rng.integers(0, 10**6, 50))])
        index.expire(index.next_position - 1000)
        assert len(index.subindexes) <= length
        sizes.append(index.nbytes)
    index.check_invariants()
    assert max(sizes[200:]) <= 1.1 * max(sizes[:200])


@designs
def test_nbytes_is_what_is_allocated(design: Design) -> None:
    def fill() -> ChainedIndex:
        rng = np.random.default_rng(2)
        index = ChainedIndex(60_000, 4, design)
        for _ in range(20):
            index.insert([Keys(rng.integers(0, 10**9, 5_000))])
        index.expire(40_000)
        return index

    said, allocated = bytes_allocated(fill)
    assert said == pytest.approx(allocated, rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((0,), "window must be a whole number of 1 or more, not 0"),
        ((8, 1), "chain_length must be a whole number of 2 or more, not 1"),
        ((8, 2, "C-chain"), "B-chain, IB-chain"),
        ((8, 2, "B-chain", 2), "fanout must be a whole number of 3 or more, not 2"),
    ],
)
def test_what_cannot_be_is_refused(arguments: tuple[object, ...], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        ChainedIndex(*arguments)  # type: ignore[arg-type]
