"""Window indexes: pure computation on columns.

In flow key columns of consecutive rows (`Keys`), and for probes one closed interval per dimension
(`Interval`) with the positions each probe row may meet (`Live`). Out flow the positions met, in
compressed rows (`Matches`), sorted runs, and snapshots of plain arrays. Nothing here knows of
streams, time, processes or threads; the kernels release the GIL, and what is immutable may be probed
by several threads at once.

This package may import NumPy and Numba, and nothing of ours.
"""

from indexes.block_probe import probe_blocks
from indexes.columns import EVERYWHERE, Interval, Keys, Live, Matches
from indexes.linear_scan import LinearScan
from indexes.permutation import Permutation, ranks_of
from indexes.permutation_offset import PermutationOffsetJoin
from indexes.permutation_search import Ranges
from indexes.sorted_run import SortedRun
from indexes.tiered_runs import TieredRuns
from indexes.window_index import WindowIndex

__all__ = [
    "EVERYWHERE",
    "Interval",
    "Keys",
    "LinearScan",
    "Live",
    "Matches",
    "Permutation",
    "PermutationOffsetJoin",
    "Ranges",
    "SortedRun",
    "TieredRuns",
    "WindowIndex",
    "probe_blocks",
    "ranks_of",
]
