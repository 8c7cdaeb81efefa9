"""All papers and their figures."""

from __future__ import annotations

from benchmarks.papers import pan_join, pim_tree, scale_join, split_join, spo_join
from benchmarks.papers.figure import Paper

PAPERS: tuple[Paper, ...] = (
    spo_join.PAPER,
    pim_tree.PAPER,
    pan_join.PAPER,
    split_join.PAPER,
    scale_join.PAPER,
)
