"""The element that answers with aggregates over the matches of each row, without listing them where it can.

In: steps of both sides from the router, with the values of the aggregates' arguments in the rows of the other side.
Out: the aggregates of the own side's rows, or the rows' matches, then the punctuation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow as pa

from indexes import Keys, Matches, WindowIndex, prepare_kernels
from operators.aggregates.range_aggregates import range_aggregate
from operators.aggregates.window_totals import WindowTotals
from operators.engines.shared.answering import Answering
from operators.engines.shared.index_setting import IndexSetting, asked_of
from operators.engines.shared.steps import Step, StepTask
from operators.engines.shared.work_items import work_through
from operators.protocol.element_rows import ElementRows
from operators.protocol.stream_ids import StreamId, outputs_of
from operators.protocol.streams import TOTALS, JoinStream, answer_streams
from operators.query.predicate import Predicate
from operators.query.select_items import AggregateItem
from topology import Batch, Bolt, Emit, Task, TaskContext

_ROWS_OF_A_THREAD = 1 << 12
"""Probe rows from which a second thread is worth starting."""


def total_dimensions(predicate: Predicate) -> tuple[int, ...] | None:
    """The dimensions, in the order of sorting, whose matches are a range of sorted rows; None if there is none.

    That is so for one interval, and for an equality and an interval.
    """
    asked = [asked_of(dimension) for dimension in predicate.dimensions]
    if any(dimension.made for dimension in predicate.dimensions) or "nothing" in asked or not asked:
        return None
    if len(asked) == 1:
        return (0,)
    if len(asked) > 2 or "point" not in asked:
        return None
    return (0, 1) if asked[0] == "point" else (1, 0)


@dataclass(frozen=True)
class TotalsElement(Bolt):
    """The window of one side, sorted in blocks with running sums; the rows of the other side probe it.

    No paper of the engines aggregates. kdb+ joins the aggregates of a window to each row (wj).

    aggregates: those of rows of the side `own`, over matches of the other.
    dimensions: the dimensions of the condition in the order of sorting.
    setting:    the index where keys do not decide every match, or a type has no running form: then matches are listed.
    threads:    threads that probe.
    """

    negated: tuple[bool, ...]
    aggregates: tuple[AggregateItem, ...]
    own: int
    dimensions: tuple[int, ...]
    setting: IndexSetting
    threads: int

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(answer_streams(counts=False, totals=True))

    @property
    def note(self) -> str:
        names = ", ".join(f"{each.function}" for each in self.aggregates)
        return f"running sums of sorted blocks: {names}; lists matches where keys do not decide"

    def prepare(self) -> None:
        prepare_kernels()

    def build(self, context: TaskContext) -> Task:
        return TotalsTask(self)


class TotalsTask(StepTask):
    """Holds the window of the other side in one of two forms.

    Which one follows from the types, and is known when both sides have had rows. Before that no row matches, and the
    rows of the other side wait.
    """

    def __init__(self, description: TotalsElement) -> None:
        super().__init__(description.negated)
        self._description = description
        self._other = 1 - description.own
        self._values: pa.RecordBatch | None = None
        self._waiting: list[tuple[ElementRows, pa.RecordBatch]] = []
        self._totals: WindowTotals | None = None
        self._index: WindowIndex | None = None
        self._answering = Answering()
        self._answered = {"totalled": 0, "listed": 0}

    def on_other(self, stream: StreamId, batch: Batch) -> Iterable[Emit]:
        assert stream.kind is JoinStream.VALUES, f"it takes no {batch.stream}"
        assert stream.side == self._other, "values are of the rows that are matched"
        self._values = batch.rows
        return ()

    def on_step(self, step: Step) -> Iterable[Emit]:
        stored, probes = step.rows[self._other], step.rows[self._description.own]
        values, self._values = self._values, None
        if stored is not None and len(stored):
            assert values is not None, "values come with their rows"
            self._waiting.append((stored, values))
        asks = probes is not None and len(probes) > 0
        if asks or self._totals is not None or self._index is not None:
            self._store(step)
        columns = self._over(probes) if asks and probes is not None else None
        if columns is not None and probes is not None:
            self._answered["totalled"] += len(probes)
            rows = pa.record_batch(columns, names=[str(number) for number in range(len(columns))])
            yield Emit(Batch(TOTALS[self._description.own].name, rows, first=probes.first))
            yield Emit(step.last)
        else:
            self._answered["listed"] += 0 if probes is None else len(probes)
            yield from self._answering.answer(self._only_own(step), self._probe)
        if self._totals is not None:
            self._totals.expire(step.limits.live[self._other])
        if self._index is not None:
            self._index.expire(step.limits.live[self._other])

    def metrics(self) -> Mapping[str, float]:
        held = (0 if each is None else each.nbytes for each in (self._totals, self._index))
        return {"index_bytes": float(sum(held)), **{name: float(rows) for name, rows in self._answered.items()}}

    def check_invariants(self) -> None:
        # one form at most, and nothing waits beside it
        assert self._totals is None or self._index is None
        assert not self._waiting or (self._totals is None and self._index is None)
        if self._totals is not None:
            self._totals.check_invariants()
        if self._index is not None:
            self._index.check_invariants()

    def _store(self, step: Step) -> None:
        """Store the rows that wait, in the form that the types allow."""
        waiting, self._waiting = self._waiting, []
        if self._totals is None and self._index is None and waiting:
            self._choose(step, *waiting[0])
        for rows, values in waiting:
            if self._totals is not None:
                self._totals.insert(self._sorting(rows.keys), self._arguments(values))
            elif self._index is not None:
                self._index.insert(rows.keys)

    def _choose(self, step: Step, rows: ElementRows, values: pa.RecordBatch) -> None:
        description = self._description
        kinds = [each.type for each in self._arguments(values) if each is not None]
        items = [item for item in description.aggregates if item.argument is not None]
        forms = iter([range_aggregate(item, kind) for item, kind in zip(items, kinds, strict=True)])
        aggregates = [None if item.argument is None else next(forms) for item in description.aggregates]
        known = all(
            item.argument is None or each for item, each in zip(description.aggregates, aggregates, strict=True)
        )
        if step.limits.counting and known:
            self._totals = WindowTotals(aggregates)
            return
        probes = step.rows[description.own]
        self._index = description.setting.make(self._other, rows.keys, None if probes is None else probes.intervals)

    def _arguments(self, values: pa.RecordBatch) -> list[pa.Array | None]:
        """The values of each aggregate's argument; those of a dictionary as they are without it."""
        return [
            None if item.argument is None else _plain(column)
            for item, column in zip(self._description.aggregates, values.columns, strict=True)
        ]

    def _sorting(self, keys: Sequence[Keys]) -> list[Keys]:
        return [keys[dimension] for dimension in self._description.dimensions]

    def _over(self, probes: ElementRows) -> list[pa.Array] | None:
        """The aggregates of probe rows; None if their matches have to be listed."""
        totals = self._totals
        if totals is None:
            return None
        intervals = [probes.intervals[dimension] for dimension in self._description.dimensions]
        shares = max(1, min(self._description.threads, len(probes) // _ROWS_OF_A_THREAD))
        ends = [len(probes) * share // shares for share in range(shares + 1)]
        parts = [slice(begin, end) for begin, end in pairwise(ends)]
        found = work_through(
            parts, lambda part: totals.over([each.rows(part) for each in intervals], probes.live.rows(part)), shares
        )
        answered = [columns for columns in found if columns is not None]
        if len(answered) < len(parts):
            return None
        return [pa.concat_arrays(columns) for columns in zip(*answered, strict=True)]

    def _probe(self, side: int, rows: ElementRows, most: int) -> Matches | None:
        if self._index is not None:
            return self._index.probe_within(most, rows.intervals, rows.live, ordered=False)
        if self._totals is None:
            return Matches.empty(len(rows))
        intervals = [rows.intervals[dimension] for dimension in self._description.dimensions]
        return self._totals.probe_within(most, intervals, rows.live)

    def _only_own(self, step: Step) -> Step:
        """The step without the rows of the other side, which meet none."""
        own = step.rows[self._description.own]
        return replace(step, rows=(own, None) if self._description.own == 0 else (None, own))


def _plain(column: pa.Array) -> pa.Array:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
