"""The window indexes by name, each made with parameters that suit a window and a batch size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from indexes.grids.grid_index import GridIndex
from indexes.kernels.linear_scan import LinearScan
from indexes.kernels.whole_numbers import check_whole_number
from indexes.kernels.window_index import WindowIndex
from indexes.one_key.hash_index import HashIndex
from indexes.one_key.sorted_list_index import SortedListIndex
from indexes.pan.bi_sort import BISort
from indexes.pan.rap_table import RaPTable
from indexes.pan.wide_bplus_tree import WiBPlusTree
from indexes.permutations.range_tree_window import RangeTreeWindow
from indexes.permutations.tiered_runs import TieredRuns
from indexes.scans.nested_loop import NestedLoop
from indexes.trees.bplus_tree import BPlusTree
from indexes.trees.chained_index import ChainedIndex
from indexes.trees.im_tree import IMTree
from indexes.trees.immutable_bplus_tree import ImmutableBPlusTree
from indexes.trees.leveled_trees import LeveledTrees
from indexes.trees.pim_tree import PIMTree

SUBWINDOWS = 4
"""Subwindows of PanJoin's structures in a window: a few, since every probe asks each of them."""


@dataclass(frozen=True)
class Place:
    """Where an index is to serve: rows live at once, rows of a batch, dimensions, which is the key, where it starts."""

    window: int
    batch: int
    dimensions: int = 1
    key: int = 0
    first_position: int = 0

    @property
    def subwindow(self) -> int:
        return max(1, -(-self.window // SUBWINDOWS))

    @property
    def options(self) -> dict[str, Any]:
        """What every index over one key takes by name."""
        return {"dimensions": self.dimensions, "key": self.key, "first_position": self.first_position}


@dataclass(frozen=True)
class Entry:
    """How an index is made, and whether it is one for ranges of one key."""

    make: Callable[[Place], WindowIndex]
    bands: bool = True


CATALOGUE: Mapping[str, Entry] = {
    "LinearScan": Entry(lambda at: LinearScan(at.first_position)),
    "NestedLoop": Entry(lambda at: NestedLoop(at.dimensions, first_position=at.first_position)),
    "SortedListIndex": Entry(lambda at: SortedListIndex(**at.options)),
    "BPlusTree": Entry(lambda at: BPlusTree(**at.options)),
    "ImmutableBPlusTree": Entry(lambda at: ImmutableBPlusTree(**at.options)),
    "B-chain": Entry(lambda at: ChainedIndex(at.window, design="B-chain", **at.options)),
    "IB-chain": Entry(lambda at: ChainedIndex(at.window, design="IB-chain", **at.options)),
    "IMTree": Entry(lambda at: IMTree(at.window, **at.options)),
    "PIMTree": Entry(lambda at: PIMTree(at.window, **at.options)),
    "LeveledTrees": Entry(lambda at: LeveledTrees(**at.options)),
    "RaPTable": Entry(lambda at: RaPTable(at.subwindow, **at.options)),
    "WiBPlusTree": Entry(lambda at: WiBPlusTree(at.subwindow, **at.options)),
    "BISort": Entry(lambda at: BISort(at.subwindow, **at.options)),
    "HashIndex": Entry(lambda at: HashIndex(**at.options), bands=False),
    "TieredRuns": Entry(lambda at: TieredRuns(at.dimensions, first_position=at.first_position)),
    "GridIndex": Entry(
        lambda at: GridIndex(at.dimensions, window=at.window, first_position=at.first_position), bands=False
    ),
    "RangeTreeWindow": Entry(
        lambda at: RangeTreeWindow(at.dimensions, first_position=at.first_position), bands=False
    ),
}


def make_index(
    name: str, *, window: int, batch: int = 1024, dimensions: int = 1, key: int = 0, first_position: int = 0
) -> WindowIndex:
    """An empty index by its name.

    window: rows that are live at once, about; batch: rows that come at once, about. `key` is the dimension that an
    index over one key uses; the others filter.
    """
    if name not in CATALOGUE:
        raise ValueError(f"there is no index called {name!r}; there are {', '.join(CATALOGUE)}")
    for what, value in (("window", window), ("batch", batch), ("dimensions", dimensions)):
        check_whole_number(name, what, value)
    return CATALOGUE[name].make(Place(window, batch, dimensions, key, first_position))
