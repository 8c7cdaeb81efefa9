"""A processing thread of ScaleJoin: stores its share of both windows and compares it with every row.

In: steps from the router, every step to every thread.
Out: the matches of every probe row with the rows stored here, then the punctuation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from indexes import Live, Matches, NestedLoop
from operators.engines.shared.index_setting import IndexSetting
from operators.engines.shared.steps import Answering, Step, StepTask
from operators.engines.shared.window_share import WindowShare
from operators.protocol.columns import Int64
from operators.protocol.element_rows import ElementRows
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import outputs_of
from operators.protocol.streams import answer_streams
from topology import Bolt, Emit, Task, TaskContext


@dataclass(frozen=True)
class ProcessingThread(Bolt):
    """One row in n of either window, n being the number of threads.

    Paper: ScaleJoin, section V-A, algorithm 1. There a thread stores a tuple if a count of all tuples, modulo n, is its
    own number; here each side is dealt by itself, so that each window is spread evenly too where R and S take turns.
    The paper compares first and then stores; since probe rows carry the positions they may meet, a step is stored
    whole and then compared, with the same result.

    setting: which index a thread keeps its rows in; None: the nested loop, as in the paper.
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
        if self.setting is None:
            return "nested loop"
        return " | ".join(dict.fromkeys(str(self.setting.choice(side)) for side in (LEFT, RIGHT)))

    def build(self, context: TaskContext) -> Task:
        return ProcessingTask(self, context.task, context.parallelism)


class ProcessingTask(StepTask):
    """Keeps a share of each side, made when the first rows of that side come."""

    def __init__(self, description: ProcessingThread, number: int, threads: int) -> None:
        super().__init__(description.negated)
        self._description = description
        self._number = number
        self._threads = threads
        self._shares: list[WindowShare | None] = [None, None]
        self._answering = Answering()
        self._comparisons = 0

    def on_step(self, step: Step) -> Iterable[Emit]:
        for side in (LEFT, RIGHT):
            rows = step.rows[side]
            if rows is not None and len(rows):
                share = self._shares[side]
                if share is None:
                    share = self._shares[side] = self._share(side, rows, step.rows[1 - side])
                share.insert(rows.first, rows.keys)
                self._comparisons += self._met(rows.live)
        yield from self._answering.answer(step, self._probe, self._count if step.limits.counting else None)
        # only now: the first rows of the step may meet what the last ones no longer do
        for side in (LEFT, RIGHT):
            share = self._shares[side]
            if share is not None:
                share.expire(step.limits.live[side])

    def metrics(self) -> Mapping[str, float]:
        shares = [share for share in self._shares if share is not None]
        return {
            "comparisons": float(self._comparisons),
            "stored": float(sum(share.stored for share in shares)),
            "index_bytes": float(sum(share.index.nbytes for share in shares)),
        }

    def check_invariants(self) -> None:
        for share in self._shares:
            if share is not None:
                share.index.check_invariants()

    def _share(self, side: int, rows: ElementRows, probes: ElementRows | None) -> WindowShare:
        setting = self._description.setting
        if setting is None:
            return WindowShare(NestedLoop(len(rows.keys)), self._number, self._threads)
        index = setting.make(side, rows.keys, probes.intervals if probes is not None else None)
        return WindowShare(index, self._number, self._threads)

    def _met(self, live: Live) -> int:
        """How many pairs of a probe row and a live row stored here there are: the work of a nested loop."""
        first, end = (-((self._number - bound) // self._threads) for bound in (live.start, live.end))
        return int(np.maximum(end - first, 0).sum())

    def _count(self, side: int, rows: ElementRows) -> Int64:
        share = self._shares[1 - side]
        return np.zeros(len(rows), np.int64) if share is None else share.count(rows.intervals, rows.live)

    def _probe(self, side: int, rows: ElementRows, most: int) -> Matches | None:
        share = self._shares[1 - side]
        if share is None:
            return Matches.empty(len(rows))
        return share.probe_within(most, rows.intervals, rows.live, ordered=self._description.ordered)
