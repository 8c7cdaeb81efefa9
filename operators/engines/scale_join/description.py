"""ScaleJoin as an engine: threads that each store one row in n and compare it with all others.

Paper: "ScaleJoin: a Deterministic, Disjoint-Parallel and Skew-Resilient Stream Join", Gulisano, Nikolakopoulos,
Papatriantafilou, Tsigas. The elements are those of its figure 2.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from operators.engines.scale_join.processing_thread import ProcessingThread
from operators.engines.shared.configured_index import ConfiguredIndex
from operators.engines.shared.engine import ROUTER, ElementPlan, Engine
from operators.engines.shared.index_setting import IndexSetting
from operators.engines.shared.setting_checks import check_index, check_number
from operators.protocol.streams import STEP
from topology import Metrics, TopologyBuilder

PROCESSING_THREAD = "processing-thread"


@dataclass(frozen=True)
class ScaleJoin(Engine):
    """The engine of ScaleJoin.

    The input ScaleGate merges all physical sources into one order. Every processing thread gets every row, stores its
    share, and compares the row with its share of the other window. The output ScaleGate merges their results in order.
    No thread knows of another, and each does an equal part of the comparisons whatever the rates and values.

    Where we depart: the threads do not read the input gate themselves. The router between them turns rows into keys,
    intervals and live positions once instead of once per thread. Windows are exact: the paper's threads purge a window
    by the time of rows of its own stream, and may compare rows that are further apart than its size.

    threads: processing threads; None: one per core.
    index:   the index in each thread, by its name in the catalogue or configured; "auto" chooses; None: the nested
             loop, as in the paper.
    """

    threads: int | None = None
    index: str | ConfiguredIndex | None = None

    def __post_init__(self) -> None:
        check_number("ScaleJoin", "threads", self.threads, optional=True)
        check_index("ScaleJoin", self.index, optional=True)

    @property
    def gate(self) -> str:
        return "input-scale-gate"

    @property
    def collector(self) -> str:
        return "output-scale-gate"

    @property
    def can_count(self) -> bool:
        return True

    @property
    def counted(self) -> Mapping[str, str]:
        return {PROCESSING_THREAD: "threads"}

    def add_elements(self, builder: TopologyBuilder, plan: ElementPlan) -> Sequence[str]:
        threads = self.threads or os.cpu_count() or 1
        setting = None if self.index is None else IndexSetting.of(self.index, plan, threads)
        element = ProcessingThread(plan.negated, plan.ordered, setting, plan.counts)
        subscription = builder.bolt(PROCESSING_THREAD, element, threads)
        for stream in STEP:
            subscription.all_grouping(ROUTER, stream.name)
        return [PROCESSING_THREAD]


def work_spread(before: Metrics | None, after: Metrics) -> float:
    """How unevenly the threads shared the comparisons between two moments: standard deviation over mean.

    The paper calls it Std c/s and keeps it under 4%. Without `before`: since the start. 0.0 when there was nothing to
    compare. A comparison is a pair of a row and a live row stored by the thread, whether a nested loop compares them
    or an index decides: with an index it measures rows, not time.
    """
    work = np.array([task.own["comparisons"] for task in after.of(PROCESSING_THREAD)])
    if before is not None:
        work -= np.array([task.own["comparisons"] for task in before.of(PROCESSING_THREAD)])
    mean = float(work.mean())
    return float(work.std()) / mean if mean else 0.0
