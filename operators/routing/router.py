"""The router: gives rows positions and live ranges, and splits them into fields (SPO-Join, section 3.2).

In: the gate's merged batches, one per stream and step, then a punctuation.
Out, per step: limits, probe rows of both sides (for some engines also one stream per dimension), payload of both sides
for the collector, the punctuation, and an order to merge when a segment is due. `protocol.streams` lists the streams.

A row of one side may meet the rows of the other at positions [start, end): `end` is the number of them before it in the
total order, `start` follows from the window. Elements only compare positions with these. So expiry is exact at any rate
and parallelism, and a batch can be stored first and probed with afterwards.

A condition with alternatives has a router for each of them; only the first emits the payload.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from indexes import Live
from operators.intake.gate_task import SEQ
from operators.protocol.columns import Int64, values_of
from operators.protocol.element_rows import ElementRows
from operators.protocol.expired_rows import ExpiredRows
from operators.protocol.limits import Limits
from operators.protocol.merge_order import Merge
from operators.protocol.sides import LEFT, RIGHT, SIDES
from operators.protocol.stream_ids import outputs_of
from operators.protocol.streams import EXPIRED, LIMITS, MERGE, PAYLOAD, PROBES, VALUES, probes_of
from operators.query.expressions import Expression
from operators.query.predicate import Predicate
from operators.query.windows import Window
from operators.routing.key_ordinals import KeyedRows, KeyOrdinals
from operators.routing.merge_policy import MergePolicy, MergeSchedule
from operators.routing.payload_plan import PayloadPlan
from operators.routing.row_keys import RowKeys
from operators.routing.step_rows import NO_ROWS, StepRows, WindowBorders, is_per_key
from operators.values.evaluation import evaluate
from topology import Batch, Bolt, Emit, Origin, Punctuation, Task, TaskContext


@dataclass(frozen=True)
class JoinSide:
    """One side of a join: its name in the query, its stream, event-time column and window, and when it merges."""

    role: str
    stream: str
    event_time: str | None
    window: Window
    merge: MergePolicy


@dataclass(frozen=True)
class Router(Bolt):
    """Routes the rows of both sides; in a self-join both sides have the same stream.

    predicate:    the alternative of the condition that this router's elements search for.
    payload:      the columns for the collector; None: another router emits them.
    split_fields: also emit each dimension as a stream of its own, for predicate elements.
    chosen:       the reason for this engine, for the plan, where the user left it open.
    keys:         the columns of each side that make its key, where a window is per key.
    counts:       ask elements for the number of matches only, if keys alone decide what matches.
    silent:       the side whose rows need no matches among earlier rows: they are stored, and meet none.
    totals:       the arguments of aggregates over rows of the silent side, for elements that aggregate; None where an
                  aggregate has no argument.
    """

    sides: tuple[JoinSide, JoinSide]
    predicate: Predicate
    payload: PayloadPlan | None
    split_fields: bool = False
    chosen: str = ""
    keys: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    counts: bool = False
    silent: int | None = None
    totals: tuple[Expression | None, ...] = ()
    beside = "inputs"

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        streams = [LIMITS, MERGE, *PROBES]
        if self.split_fields:
            streams += [probes_of(side, d) for side in (LEFT, RIGHT) for d in range(len(self.predicate.dimensions))]
        if self.totals and self.silent is not None:
            streams.append(VALUES[self.silent])
        if self.payload is not None:
            streams += [*PAYLOAD, *(EXPIRED[side] for side in self.listed)]
        return outputs_of(streams)

    @property
    def listed(self) -> list[int]:
        """The sides whose rows expire one by one and are remembered until then."""
        remembered = (False, False) if self.payload is None else self.payload.kind.remembered
        return [side for side in (LEFT, RIGHT) if remembered[side] and is_per_key(self.sides[side].window)]

    @property
    def note(self) -> str:
        left, right = (str(side.window) for side in self.sides)
        windows = left if left == right else f"{left} | {right}"
        return f"{windows}; {self.chosen}" if self.chosen else windows

    def build(self, context: TaskContext) -> Task:
        return RouterTask(self)


class RouterTask(Task):
    """Collects a whole step, then emits it."""

    def __init__(self, description: Router) -> None:
        self._description = description
        self._payload = description.payload
        self._payload_columns: list[list[str] | None] = [None, None]
        self._streams = tuple(side.stream for side in description.sides)
        self._schedules = tuple(MergeSchedule(side.merge) for side in description.sides)
        left, right = description.sides
        expiring = (False, False) if description.payload is None else description.payload.kind.remembered
        self._borders = WindowBorders(
            ((left.window, left.event_time), (right.window, right.event_time)),
            self_join=self._streams[LEFT] == self._streams[RIGHT],
            expiring=expiring,
        )
        self._keys = RowKeys(description.predicate)
        self._ordinals: KeyOrdinals | None = None
        if description.keys is not None:
            self._ordinals = KeyOrdinals((left.window, right.window), description.keys, expiring)
        self._listed = description.listed
        self._pending: dict[str, Batch] = {}
        self._missing: dict[str, int] = {}  # rows of a stream before the first that came here

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        assert batch.stream not in self._pending, "the gate sends one batch per stream and step"
        self._pending[batch.stream] = batch
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        pending, self._pending = self._pending, {}
        if not any(batch.num_rows for batch in pending.values()):
            return self._begin(pending, punctuation)
        batches = tuple(self._from_here(pending.get(stream)) for stream in self._streams)
        return self._route((batches[LEFT], batches[RIGHT]), punctuation)

    def _begin(self, streams: Mapping[str, Batch], punctuation: Punctuation) -> Iterable[Emit]:
        """Learn the columns of streams before their first rows come: the gate sends batches without rows.

        After a restart they begin in the middle of the streams, and the batches have positions. Windows count the rows
        before, which have expired. Positions downstream begin at 0: only their order matters.
        """
        arrived = self._borders.arrived
        left, right = (self._schedules[side].handover(arrived[side]) for side in (LEFT, RIGHT))
        yield Emit(Limits((left, right), self._borders.live).to_batch())
        for side, stream in enumerate(self._streams):
            batch = streams.get(stream)
            if batch is not None:
                self._missing[stream] = batch.first
                self._borders.begin(side, batch.first)
                yield from self._send_payload(side, Batch(stream, batch.rows), (None, None))
        yield Emit(punctuation)

    def _from_here(self, batch: Batch | None) -> Batch | None:
        """A batch whose positions count from where this router began."""
        missing = 0 if batch is None else self._missing.get(batch.stream, 0)
        return batch if batch is None or not missing else replace(batch, first=batch.first - missing)

    def _route(self, batches: tuple[Batch | None, Batch | None], punctuation: Punctuation) -> Iterable[Emit]:
        arrived = self._borders.arrived
        handover = tuple(self._schedules[side].handover(arrived[side]) for side in (LEFT, RIGHT))
        keyed = self._numbered(batches)
        step = self._borders.take(batches, keyed)
        keys = self._keys.take(step, keyed)
        counting = self._description.counts and self._keys.decide
        yield Emit(Limits((handover[LEFT], handover[RIGHT]), self._borders.live, counting).to_batch())
        for side in (LEFT, RIGHT):
            batch = batches[side]
            if batch is not None:
                lives = step.lives[side]
                if side == self._description.silent:
                    lives = Live(lives.end, lives.end)
                rows = ElementRows(batch.first, step.seqs[side], keys.keys[side], keys.intervals[side], lives)
                yield from self._send_rows(side, batch, rows, step)
        for side in (LEFT, RIGHT):
            if keyed is not None and side in self._listed:
                yield Emit(self._expired(side, keyed[side], step))
        yield Emit(punctuation)
        for side in (LEFT, RIGHT):
            self._schedules[side].note(arrived[side], step.times[side], self._borders.units[side])
            arrived_now, live = self._borders.arrived[side], self._borders.live[side]
            for segment, first, end in self._schedules[side].due(arrived_now, live):
                yield Emit(Merge(side, segment, first, end).to_batch())

    def metrics(self) -> Mapping[str, float]:
        counted: dict[str, float] = {}
        for side, name in enumerate(SIDES):
            arrived, live = self._borders.arrived[side], self._borders.live[side]
            counted |= {f"{name}_rows": float(arrived), f"{name}_live": float(arrived - live)}
            most = self._description.sides[side].window.rows
            if most is not None:
                counted[f"{name}_window"] = float(most)
        return counted

    def _numbered(self, batches: tuple[Batch | None, Batch | None]) -> tuple[KeyedRows, KeyedRows] | None:
        """Ordinals and expiry of a step's rows in windows per key; None without such a window."""
        if self._ordinals is None:
            return None
        assert self._description.keys is not None
        columns = [
            [] if batch is None else [batch.rows.column(name) for name in names]
            for batch, names in zip(batches, self._description.keys, strict=True)
        ]
        seqs = [NO_ROWS if batch is None else values_of(batch.rows.column(SEQ)) for batch in batches]
        return self._ordinals.add((columns[LEFT], columns[RIGHT]), (seqs[LEFT], seqs[RIGHT]))

    def _expired(self, side: int, keyed: KeyedRows, step: StepRows) -> Batch:
        """The rows of a window per key that expire in this step; a row without a key expires at the next row."""
        valid = keyed.ordinals.valid
        lacking = NO_ROWS if valid is None else np.flatnonzero(~valid)
        first = self._borders.arrived[side] - len(keyed.ordinals)
        positions = np.concatenate([keyed.expired, first + lacking])
        places = np.concatenate([keyed.places, step.seqs[side][lacking] + 1])
        order = np.argsort(places, kind="stable")
        assert self._ordinals is not None
        return ExpiredRows(positions[order], places[order], self._ordinals.live[side]).to_batch(side)

    def _send_rows(self, side: int, batch: Batch, rows: ElementRows, step: StepRows) -> Iterator[Emit]:
        yield Emit(rows.to_batch(side, batch.born))
        for d in range(len(rows.keys) if self._description.split_fields else 0):
            yield Emit(rows.to_batch_of_dimension(side, d, batch.born))
        if self._description.totals and side == self._description.silent:
            yield Emit(self._values(side, batch))
        yield from self._send_payload(side, batch, step.expired[side])

    def _values(self, side: int, batch: Batch) -> Batch:
        """The arguments of the aggregates, evaluated for a step's rows; nulls for what has none."""
        values = [
            pa.nulls(batch.num_rows) if each is None else evaluate(each, lambda column: batch.rows.column(column.name))
            for each in self._description.totals
        ]
        rows = pa.record_batch(values, names=[str(number) for number in range(len(values))])
        return Batch(VALUES[side].name, rows, first=batch.first, born=batch.born)

    def _send_payload(self, side: int, batch: Batch, expired: tuple[Int64 | None, Int64 | None]) -> Iterator[Emit]:
        if self._payload is not None:
            columns = self._payload_columns[side]
            if columns is None:  # the rows of a side have one schema
                columns = self._payload_columns[side] = self._payload.columns(side, batch.rows.schema)
            payload = self._payload.rows(side, batch.rows, columns, expired)
            yield Emit(Batch(PAYLOAD[side].name, payload, first=batch.first, born=batch.born))
