"""The chained index: how both designs grow and drop the chain, and memory."""

from __future__ import annotations

import numpy as np
import pytest

from indexes import Keys
from indexes.trees.breadth_first_tree import BreadthFirstTree
from indexes.trees.chained_index import ChainedIndex, Design
from indexes.trees.linked_tree import LinkedTree
from tests.indexes.measured import bytes_allocated

designs = pytest.mark.parametrize("design", ["B-chain", "IB-chain"])


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
