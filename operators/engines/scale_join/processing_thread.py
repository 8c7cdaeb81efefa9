"""A processing thread of ScaleJoin: stores its share of both windows and compares it with every row.

In: steps from the router, every step to every thread.
Out: the matches of every probe row with the rows stored here, then the punctuation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from indexes import prepare_kernels
from operators.engines.shared.index_setting import IndexSetting, index_note
from operators.engines.shared.steps import Step
from operators.engines.shared.store_and_probe import StoreAndProbeTask
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import outputs_of
from operators.protocol.streams import answer_streams
from topology import Bolt, Task, TaskContext


@dataclass(frozen=True)
class ProcessingThread(Bolt):
    """Stores one row in n of either window, where n is the number of threads.

    Paper: ScaleJoin, section V-A, algorithm 1. There a thread stores a tuple if a count of all tuples, modulo n, is its
    own number. Here each side is dealt by itself, so that each window is spread evenly also where R and S take turns.
    The paper compares first and then stores. Probe rows carry the positions they may meet, so a step is stored whole
    and then compared, with the same result.

    setting: the index that a thread keeps its rows in; None: the nested loop, as in the paper.
    """

    negated: tuple[bool, ...]
    ordered: bool
    setting: IndexSetting | None = None
    counts: bool = False

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(answer_streams(self.counts))

    @property
    def note(self) -> str:
        return index_note(self.setting)

    def prepare(self) -> None:
        prepare_kernels()

    def build(self, context: TaskContext) -> Task:
        return ProcessingTask(self, context.task, context.parallelism)


class ProcessingTask(StoreAndProbeTask):
    """Also counts comparisons: the pairs of a probe row and a live row stored here."""

    def __init__(self, description: ProcessingThread, number: int, threads: int) -> None:
        super().__init__(description.negated, description.setting, description.ordered, number, threads)
        self._comparisons = 0

    def store(self, step: Step) -> None:
        super().store(step)
        for side in (LEFT, RIGHT):
            rows = step.rows[side]
            if rows is not None and len(rows):
                self._comparisons += self._shares[1 - side].live_pairs(rows.live)

    def metrics(self) -> Mapping[str, float]:
        return {**super().metrics(), "comparisons": float(self._comparisons)}
