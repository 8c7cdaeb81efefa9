"""Filtering the candidates of many bands at once.

A structure writes what lies in the bands, and asks for nothing else; most often every row of a subwindow is live
for every probe and there is nothing else to ask. Where there is, the filter goes over all it wrote.
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
    live_first, live_end = probe.first, probe.end
    first = oldest
    end = newest + 1
    for row in range(live_first.size):
        first = max(first, live_first[row])
        end = min(end, live_end[row])
    return first <= oldest and end > newest


@kernel
def keep_passing(probe: Probe, band: int, end_band: int, begin: int, positions: np.ndarray, ends: np.ndarray) -> int:
    """Keep those candidates of bands [band, end_band) that pass; their first is at positions[begin].

    Moves them together and returns the new end. Cost: O(candidates).
    """
    # Fields of a tuple are counted references: taking them once keeps the counting out of the loop.
    row, live_first, live_end = probe.row, probe.first, probe.end
    alone = probe.others.shape[0] == 0
    kept = begin
    for b in range(band, end_band):
        first, end = live_first[row[b]], live_end[row[b]]
        for i in range(begin, ends[b]):
            position = positions[i]
            positions[kept] = position
            if alone:
                kept += (position >= first) & (position < end)
            else:
                kept += passes(probe, row[b], position)
        begin = ends[b]
        ends[b] = kept
    return kept
