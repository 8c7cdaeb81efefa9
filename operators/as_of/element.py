"""The element of an as-of join: takes the gate's steps and emits each left row with the right row chosen for it.

In: the gate's merged batches, one per stream and step, then a punctuation.
Out: result rows in the order in which choices become certain, then the punctuation.

It holds the payload of few rows only: of left rows that wait, of right rows that a left row has chosen so far, and of
those that a left row still to come may choose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indexes import prepare_kernels
from operators.as_of.backward import BackwardChooser
from operators.as_of.chooser import Chooser, make_chooser
from operators.as_of.rows import HIDDEN, NONE, Chosen, Rows
from operators.intake.gate_task import SEQ
from operators.intake.time_unit import time_column
from operators.protocol.columns import Int64, values_of
from operators.protocol.sides import LEFT, RIGHT, SIDES
from operators.query.as_of import AsOf
from operators.query.expressions import Expression
from operators.query.kinds import Kind
from operators.results.result_kinds import Results
from operators.results.result_rows import ResultRows
from operators.results.result_times import EVENT_TIME, times_as_column
from operators.routing.key_numbers import KeyNumbers
from operators.values.evaluation import evaluate
from operators.values.selection import Selection
from topology import (
    DEFAULT_STREAM,
    Batch,
    Bolt,
    Emit,
    Origin,
    Punctuation,
    Task,
    TaskContext,
    Time,
    Watermark,
    event_times,
)

RESULT_ROWS = 1 << 18
"""The most rows of one result batch."""

SPARE_ROWS = 1 << 16
"""Payload of rows that nothing needs is given up when it is more than what is needed, and more rows than this; whenever
so many rows have come, the element looks."""


@dataclass(frozen=True)
class AsOfSide:
    """One side: its stream and event-time column, the columns of its key, and the rows that can match or appear.

    matching: the condition that a row must satisfy to match; None: every row may.
    shown:    the condition that a row must satisfy to appear at all.
    """

    stream: str
    event_time: str
    key: tuple[str, ...]
    matching: Expression | None = field(default=None, compare=False)
    shown: Expression | None = field(default=None, compare=False)


@dataclass(frozen=True)
class AsOfJoin(Bolt):
    """Joins two streams as of the left rows' event times.

    timed:   results have an event time, and watermarks follow them.
    time_of: the side whose row gives a result its event time: the left one; None: the row at which it is certain.
    """

    sides: tuple[AsOfSide, AsOfSide]
    settings: AsOf
    selection: Selection
    timed: bool = False
    time_of: int | None = None

    @property
    def unordered_streams(self) -> frozenset[str]:  # type: ignore[override]
        """A left row that waits long comes out after later ones."""
        in_order = self.time_of is None or self.settings.direction == "backward"
        return frozenset() if in_order or not self.timed else frozenset({DEFAULT_STREAM})

    @property
    def note(self) -> str:
        return f"{self.selection.kind}, {self.settings}"

    def build(self, context: TaskContext) -> Task:
        return AsOfTask(self)

    def prepare(self) -> None:
        prepare_kernels()


class AsOfTask(Task):
    """Collects the batches of a step, and handles them with its punctuation."""

    merges_watermarks = False

    def __init__(self, description: AsOfJoin) -> None:
        self._description = description
        self._sides = description.sides
        self._keys = KeyNumbers((self._sides[LEFT].key, self._sides[RIGHT].key)) if self._sides[LEFT].key else None
        self._chooser: BackwardChooser | Chooser | None = None
        self._rows = ResultRows(description.selection)
        self._needed: list[list[str] | None] = [None, None]
        self._held = [0, 0]
        self._looks_at = SPARE_ROWS
        self._arrived = [0, 0]
        self._step: dict[str, pa.RecordBatch] = {}
        self._answered = self._emitted = 0
        self._type: pa.DataType | None = None
        self._promised: Time | None = None

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        self._step[batch.stream] = batch.rows
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        step, self._step = self._step, {}
        left, right = self._taken(LEFT, step), self._taken(RIGHT, step)
        if self._chooser is not None and (len(left.seqs) or len(right.seqs)):
            chosen = self._chooser.take(left, right, 1 if self._keys is None else len(self._keys))
            yield from self._emit(chosen, punctuation.born)
            yield from self._promise(self._chooser)
            self._give_up_spare()
        self._answered = punctuation.seq + 1
        yield Emit(punctuation)

    def on_end(self) -> Iterable[Emit]:
        return () if self._chooser is None else self._emit(self._chooser.end(), 0.0)

    def metrics(self) -> Mapping[str, float]:
        waiting = 0 if self._chooser is None else self._chooser.waiting
        return {
            "results": float(self._emitted),
            "answered": float(self._answered),
            "waiting_rows": float(waiting),
            "payload_bytes": float(self._rows.nbytes),
            **{f"{name}_rows": float(self._arrived[side]) for side, name in enumerate(SIDES)},
            **{f"{name}_live": float(self._held[side]) for side, name in enumerate(SIDES)},
        }

    def check_invariants(self) -> None:
        if self._chooser is not None:
            self._chooser.check_invariants()
            for side, positions in enumerate(self._chooser.held()):
                # all rows that may be needed are held
                assert not len(positions) or positions[-1] < self._held[side]

    def _taken(self, side: int, step: Mapping[str, pa.RecordBatch]) -> Rows:
        """The rows of a side as the chooser takes them; their payload is held from now on."""
        described = self._sides[side]
        batch = step.get(described.stream)
        first = self._held[side]
        if batch is None:
            empty = np.empty(0, np.int64)
            times = empty if self._chooser is None else empty.astype(self._chooser.times)
            return Rows(empty, times, empty, first)
        column = batch.column(time_column(batch.schema, described.event_time))
        if self._chooser is None:
            self._chooser = make_chooser(self._description.settings, column.type)
            self._type = column.type
        needed = self._needed[side]
        if needed is None:  # the rows of a side have one schema
            needed = self._needed[side] = self._description.selection.needed_columns(side, batch.schema)
        self._rows.append(side, batch.select(needed))
        self._held[side] += batch.num_rows
        self._arrived[side] += batch.num_rows
        times = np.array(event_times(column)[0], self._chooser.times)
        return Rows(np.array(values_of(batch.column(SEQ))), times, self._numbers(side, batch), first)

    def _numbers(self, side: int, batch: pa.RecordBatch) -> Int64:
        """The key of each row; none where it cannot match."""
        described = self._sides[side]
        if self._keys is None:
            numbers = np.zeros(batch.num_rows, np.int64)
        else:
            numbers = self._keys.of(side, [batch.column(name) for name in described.key], batch.num_rows)
        for condition, otherwise in ((described.matching, NONE), (described.shown, HIDDEN)):
            if condition is not None:
                true = pc.fill_null(
                    evaluate(condition, lambda column: batch.column(column.name), batch.num_rows), False
                )
                numbers[~true.to_numpy(zero_copy_only=False)] = otherwise
        return numbers

    def _emit(self, chosen: Chosen, born: float) -> Iterator[Emit]:
        described = self._description
        left, right = chosen.left, chosen.right
        times = chosen.places if described.time_of is None else chosen.times
        if described.selection.kind is Kind.ASOF_INNER:
            matched = right != NONE
            left, right, times = left[matched], right[matched], times[matched]
        for start in range(0, len(left), RESULT_ROWS):
            part = slice(start, start + RESULT_ROWS)
            rows = self._rows.of(Results(left[part], right[part]))
            if described.timed:
                rows = rows.append_column(EVENT_TIME, times_as_column(times[part], self._type))
            yield Emit(Batch(DEFAULT_STREAM, rows, first=self._emitted, born=born))
            self._emitted += rows.num_rows

    def _promise(self, chooser: BackwardChooser | Chooser) -> Iterator[Emit]:
        """Emit a watermark if the event time of all results that follow has risen."""
        if not self._description.timed:
            return
        time = chooser.now if self._description.time_of is None else chooser.earliest
        if self._promised is None or time > self._promised:
            self._promised = time
            yield Emit(Watermark(time, DEFAULT_STREAM))

    def _give_up_spare(self) -> None:
        assert self._chooser is not None
        if max(self._held) <= self._looks_at:
            return
        needed = self._chooser.held()
        if any(held > SPARE_ROWS + 2 * len(kept) for held, kept in zip(self._held, needed, strict=True)):
            self._chooser.renumber(*needed)
            for side, positions in enumerate(needed):
                self._rows.keep(side, positions)
                self._held[side] = len(positions)
        self._looks_at = max(self._held) + SPARE_ROWS
