"""The task of every engine that divides a window by position: store a share of both sides, probe with all rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from indexes import Live, Matches
from operators.engines.shared.answering import Answering
from operators.engines.shared.index_setting import IndexSetting
from operators.engines.shared.steps import Step, StepTask
from operators.engines.shared.window_share import WindowShare
from operators.protocol.columns import Int64
from operators.protocol.element_rows import ElementRows
from operators.protocol.sides import LEFT, RIGHT
from topology import Emit


class StoreAndProbeTask(StepTask):
    """Holds share `number` of `shares` of each side; every probe row is answered with its matches among them.

    A whole step is stored before any of its rows probes. The result is that of storing and probing row by row, because
    which rows are stored depends on their positions alone, and which of them a probe row meets on its live range.

    setting: which index holds a share; None: the nested loop.
    ordered: the matches of a probe row come in order of position.
    """

    def __init__(
        self,
        negated: Sequence[bool],
        setting: IndexSetting | None,
        ordered: bool,
        number: int = 0,
        shares: int = 1,
    ) -> None:
        super().__init__(negated)
        self._ordered = ordered
        self._shares = tuple(WindowShare(side, setting, number, shares) for side in (LEFT, RIGHT))
        self._answering = Answering()

    def on_step(self, step: Step) -> Iterable[Emit]:
        self.store(step)
        yield from self._answering.answer(step, self._probe, self._count if step.limits.counting else None)
        # only now: the first rows of the step may meet what the last ones no longer do
        self.expire(step)

    def store(self, step: Step) -> None:
        """Store the rows of a step, before any of them probes."""
        for side in (LEFT, RIGHT):
            rows, probes = step.rows[side], step.rows[1 - side]
            if rows is not None and len(rows):
                self._shares[side].store(rows.first, rows.keys, None if probes is None else probes.intervals)

    def expire(self, step: Step) -> None:
        """Free the rows that no later step meets, after the step has been answered."""
        for side in (LEFT, RIGHT):
            self._shares[side].expire(step.limits.live[side])

    def live(self, side: int, rows: ElementRows) -> Live:
        """The stored positions of the other side that rows of `side` may meet here."""
        return rows.live

    def metrics(self) -> Mapping[str, float]:
        left, right = self._shares
        return {
            "left_stored": float(left.stored),
            "right_stored": float(right.stored),
            "index_bytes": float(left.nbytes + right.nbytes),
            **summed(left.counters, right.counters),
        }

    def check_invariants(self) -> None:
        for share in self._shares:
            share.check_invariants()

    def _probe(self, side: int, rows: ElementRows, most: int) -> Matches | None:
        live = self.live(side, rows)
        return self._shares[1 - side].probe_within(most, rows.intervals, live, ordered=self._ordered)

    def _count(self, side: int, rows: ElementRows) -> Int64:
        return self._shares[1 - side].count(rows.intervals, self.live(side, rows))


def summed(*counters: Mapping[str, int]) -> dict[str, float]:
    """The counters of several indexes together, by name."""
    names = dict.fromkeys(name for each in counters for name in each)
    return {name: float(sum(each.get(name, 0) for each in counters)) for name in names}
