"""Filter the candidates of many bands at once.

A structure writes every row that lies in the bands, unfiltered. Most often that is the answer, because every row of
a subwindow is live for every probe row and there are no other dimensions. Otherwise the filter goes over all
candidates in one pass.
"""

from __future__ import annotations

import numpy as np

from indexes.kernels.compiled import kernel
from indexes.one_key.candidates import Probe, passes


@kernel
def all_pass(probe: Probe, oldest: int, newest: int) -> bool:
    """Whether every row at positions oldest..newest passes every probe row's filters. Cost: O(probe rows)."""
    if probe.others.shape[0]:
        return False
    live_start, live_end = probe.start, probe.end
    start = oldest
    end = newest + 1
    for row in range(live_start.size):
        start = max(start, live_start[row])
        end = min(end, live_end[row])
    return start <= oldest and end > newest


@kernel
def keep_passing(probe: Probe, band: int, end_band: int, begin: int, positions: np.ndarray, ends: np.ndarray) -> int:
    """Keep the candidates of bands [band, end_band) that pass the filters; they begin at positions[begin].

    Compacts them in place and returns the new end. Cost: O(candidates).
    """
    # Fields of a tuple are counted references: reading them once keeps the counting out of the loop.
    row, live_start, live_end = probe.row, probe.start, probe.end
    alone = probe.others.shape[0] == 0
    kept = begin
    for b in range(band, end_band):
        start, end = live_start[row[b]], live_end[row[b]]
        for i in range(begin, ends[b]):
            position = positions[i]
            positions[kept] = position
            if alone:
                kept += (position >= start) & (position < end)
            else:
                kept += passes(probe, row[b], position)
        begin = ends[b]
        ends[b] = kept
    return kept
