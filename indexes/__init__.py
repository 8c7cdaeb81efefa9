"""Window indexes: pure computation on columns.

In flow key columns of consecutive rows (`Keys`), and for probes one closed interval per dimension
(`Interval`) with the positions each probe row may meet (`Live`). Out flow the positions met, in
compressed rows (`Matches`), sorted runs, and snapshots of plain arrays. Nothing here knows of
streams, time, processes or threads; the kernels release the GIL, and what is immutable may be probed
by several threads at once.

This package may import NumPy, Numba and sortedcontainers, and nothing of ours.
"""

from indexes.bi_sort import BISort
from indexes.block_probe import count_blocks, probe_blocks
from indexes.bplus_tree import BPlusTree
from indexes.catalogue import CATALOGUE, make_index
from indexes.chained_index import ChainedIndex
from indexes.choice import Choice, Observed, Query, choose
from indexes.columns import EVERYWHERE, Interval, Keys, Live, Matches
from indexes.grid_index import GridIndex
from indexes.hash_index import HashIndex
from indexes.im_tree import IMTree
from indexes.immutable_bplus_tree import ImmutableBPlusTree
from indexes.leveled_trees import LeveledTrees
from indexes.linear_scan import LinearScan
from indexes.long_key_index import LongKeyIndex
from indexes.long_keys import LongInterval, LongKeys
from indexes.nested_loop import NestedLoop
from indexes.permutation import Permutation, ranks_of
from indexes.permutation_offset import PermutationOffsetJoin
from indexes.permutation_search import Ranges
from indexes.pim_tree import PIMTree
from indexes.range_tree_window import RangeTreeWindow
from indexes.rap_table import RaPTable
from indexes.sorted_list_index import SortedListIndex
from indexes.sorted_run import SortedRun
from indexes.tiered_runs import TieredRuns
from indexes.wide_bplus_tree import WiBPlusTree
from indexes.window_index import WindowIndex

__all__ = [
    "CATALOGUE",
    "EVERYWHERE",
    "BISort",
    "BPlusTree",
    "ChainedIndex",
    "Choice",
    "GridIndex",
    "HashIndex",
    "IMTree",
    "ImmutableBPlusTree",
    "Interval",
    "Keys",
    "LeveledTrees",
    "LinearScan",
    "Live",
    "LongInterval",
    "LongKeyIndex",
    "LongKeys",
    "Matches",
    "NestedLoop",
    "Observed",
    "PIMTree",
    "Permutation",
    "PermutationOffsetJoin",
    "Query",
    "RaPTable",
    "RangeTreeWindow",
    "Ranges",
    "SortedListIndex",
    "SortedRun",
    "TieredRuns",
    "WiBPlusTree",
    "WindowIndex",
    "choose",
    "count_blocks",
    "make_index",
    "probe_blocks",
    "ranks_of",
]
