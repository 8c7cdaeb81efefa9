"""Every window index, with parameters so small that splits, merges and overflows happen on a few rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from indexes import (
    BISort,
    BPlusTree,
    ChainedIndex,
    GridIndex,
    HashIndex,
    ImmutableBPlusTree,
    IMTree,
    LeveledTrees,
    LinearScan,
    NestedLoop,
    PIMTree,
    RangeTreeWindow,
    RaPTable,
    SortedListIndex,
    TieredRuns,
    WiBPlusTree,
    WindowIndex,
)
from tests.indexes.contract import Make


def tiny_indexes(rng: np.random.Generator) -> dict[str, Make]:
    """A maker of each index by name; `rng` picks its parameters, the key among them."""

    def one_of(*values: int) -> int:
        return int(rng.choice(values))

    def options(dimensions: int, first: int) -> dict[str, Any]:
        return {"dimensions": dimensions, "key": int(rng.integers(dimensions)), "first_position": first}

    def merge_tree(kind: type[IMTree | PIMTree], d: int, first: int) -> WindowIndex:
        depth: dict[str, Any] = {} if kind is IMTree else {"insertion_depth": one_of(0, 1, 2, 3)}
        return kind(
            one_of(1, 8, 40),
            merge_ratio=float(rng.choice([0.1, 0.5, 1.0])),
            fanout=one_of(3, 4),
            immutable_fanout=one_of(2, 3),
            **depth,
            **options(d, first),
        )

    return {
        "LinearScan": lambda d, first: LinearScan(first),
        "NestedLoop": lambda d, first: NestedLoop(d, first_position=first, block_rows=one_of(1, 4, 16)),
        "BPlusTree": lambda d, first: BPlusTree(one_of(3, 4, 5), **options(d, first)),
        "SortedListIndex": lambda d, first: SortedListIndex(**options(d, first)),
        "ImmutableBPlusTree": lambda d, first: ImmutableBPlusTree(one_of(2, 3), **options(d, first)),
        "B-chain": lambda d, first: ChainedIndex(
            one_of(1, 5, 30), one_of(2, 4), "B-chain", one_of(3, 4), **options(d, first)
        ),
        "IB-chain": lambda d, first: ChainedIndex(
            one_of(1, 5, 30), one_of(2, 4), "IB-chain", one_of(3, 4), **options(d, first)
        ),
        "IMTree": lambda d, first: merge_tree(IMTree, d, first),
        "PIMTree": lambda d, first: merge_tree(PIMTree, d, first),
        "LeveledTrees": lambda d, first: LeveledTrees(one_of(1, 5), one_of(2, 3), 3, **options(d, first)),
        "RaPTable": lambda d, first: RaPTable(one_of(1, 7, 20), one_of(1, 2, 4), **options(d, first)),
        "WiBPlusTree": lambda d, first: WiBPlusTree(one_of(1, 7, 50), one_of(2, 4), 4, **options(d, first)),
        "BISort": lambda d, first: BISort(one_of(1, 7, 50), one_of(0, 2, 5), one_of(1, 4), **options(d, first)),
        "HashIndex": lambda d, first: HashIndex(**options(d, first)),
        "TieredRuns": lambda d, first: TieredRuns(
            d, first_position=first, tail_rows=one_of(1, 5, 12), largest_block=one_of(4, 64)
        ),
        # Without a tail every batch becomes a segment, and the segments answer.
        "PermutationOffsetJoin": lambda d, first: TieredRuns(d, first_position=first, tail_rows=0, largest_block=1),
        "GridIndex": lambda d, first: GridIndex(
            d, window=one_of(1, 500), first_position=first, first_look=one_of(1, 10, 100)
        ),
        "RangeTreeWindow": lambda d, first: RangeTreeWindow(
            d, first_position=first, tail_rows=one_of(0, 5), cut_rows=one_of(1, 4), largest_block=one_of(4, 64)
        ),
    }


NAMES = tuple(tiny_indexes(np.random.default_rng(0)))
