"""The router: numbers the rows, finds what each may meet, and splits them into fields (SPO-Join, section 3.2).

In: the gate's merged batches, one per stream and step, then a punctuation.
Out, per step: `limits` (what is live, and where the immutable part ends), `probes.left` and `probes.right` (keys,
intervals and live ranges; also one stream per dimension, for the predicate elements), `payload.left` and
`payload.right` (the selected columns, for the collector), the punctuation, and `merge` when a segment is due.

A row of one side meets rows of the other with positions [first, end): end is the number of them before it in the total
order, first comes from the window. All later elements only compare positions with these, so expiry is exact at any rate
and parallelism, and a batch can be stored first and probed afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from indexes import Interval, Keys, Live
from operators.bounds import BoundDimension, bind
from operators.element_rows import LEFT, RIGHT, SIDES, ElementRows, Int64, Limits, Merge, values_of
from operators.gate import SEQ, TIME
from operators.key_types import to_keys
from operators.merge_policy import MergePolicy, MergeSchedule
from operators.predicate import Predicate
from operators.selection import Selection
from operators.windows import Liveness, Times, Window, liveness
from topology import Batch, Bolt, Emit, Origin, Punctuation, Task, TaskContext
from topology.event_time import event_times


@dataclass(frozen=True)
class JoinSide:
    """One side of a join: how the query calls it, its stream, event-time column and window, and when it merges."""

    role: str
    stream: str
    event_time: str | None
    window: Window
    merge: MergePolicy


@dataclass(frozen=True)
class Router(Bolt):
    """Routes the rows of both sides; in a self-join both sides have the same stream.

    split_fields: also send each dimension as a stream of its own, for predicate elements.
    chosen:       why this engine, for the plan, where the user left it open.
    """

    sides: tuple[JoinSide, JoinSide]
    predicate: Predicate
    selection: Selection
    split_fields: bool = False
    chosen: str = ""

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        names = [f"{kind}.{side}" for kind in ("probes", "payload") for side in SIDES]
        if self.split_fields:
            names += [f"probes.{side}.{d}" for side in SIDES for d in range(len(self.predicate.dimensions))]
        return dict.fromkeys([*names, "limits", "merge"])

    @property
    def note(self) -> str:
        left, right = (str(side.window) for side in self.sides)
        windows = left if left == right else f"{left} | {right}"
        return f"{windows}; {self.chosen}" if self.chosen else windows

    def build(self, context: TaskContext) -> Task:
        return RouterTask(self)


@dataclass
class _SideState:
    """What the router remembers of one side: how many rows have come, and how far they are live."""

    schedule: MergeSchedule
    liveness: Liveness | None = None
    arrived: int = 0
    live: int = 0
    schema: pa.Schema | None = None


class RouterTask(Task):
    """Waits for a whole step, then sends it on."""

    def __init__(self, description: Router) -> None:
        self._description = description
        self._sides = description.sides
        self._self_join = description.sides[0].stream == description.sides[1].stream
        self._states = tuple(_SideState(MergeSchedule(side.merge)) for side in description.sides)
        self._bound: list[BoundDimension] | None = None
        self._pending: dict[str, Batch] = {}

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        assert batch.stream not in self._pending, "the gate sends one batch per stream and step"
        self._pending[batch.stream] = batch
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        batches = tuple(self._pending.get(side.stream) for side in self._sides)
        self._pending = {}
        if self._bound is None:
            self._bind(batches)
        arrived = (self._states[LEFT].arrived, self._states[RIGHT].arrived)
        handover = tuple(state.schedule.handover(state.arrived) for state in self._states)
        seqs = [_NO_ROWS if batch is None else values_of(batch.rows.column(SEQ)) for batch in batches]
        times = [self._arrive(side, batches[side]) for side in (LEFT, RIGHT)]
        lives = [self._live(side, batches[side], seqs, times[side], arrived) for side in (LEFT, RIGHT)]
        live = (self._states[LEFT].live, self._states[RIGHT].live)
        yield Emit(Limits((handover[LEFT], handover[RIGHT]), live).to_batch())
        for side in (LEFT, RIGHT):
            batch = batches[side]
            if batch is not None:
                yield from self._send_rows(side, batch, seqs[side], lives[side])
        yield Emit(punctuation)
        for side in (LEFT, RIGHT):
            state = self._states[side]
            for segment, first, end in state.schedule.due(state.arrived, state.live):
                yield Emit(Merge(side, segment, first, end).to_batch())

    def metrics(self) -> Mapping[str, float]:
        left, right = self._states
        return {
            "left_rows": float(left.arrived),
            "right_rows": float(right.arrived),
            "left_live": float(left.arrived - left.live),
            "right_live": float(right.arrived - right.live),
        }

    def _bind(self, batches: tuple[Batch | None, ...]) -> None:
        """Fix the types as soon as rows of both sides have been seen; before that nothing can match."""
        for state, side, batch in zip(self._states, self._sides, batches, strict=True):
            if batch is not None and state.schema is None:
                state.schema = batch.rows.schema
                kind = None if side.event_time is None else state.schema.field(side.event_time).type
                state.liveness = liveness(side.window, kind)
        left, right = (state.schema for state in self._states)
        if left is not None and right is not None:
            self._bound = [
                bind(dimension, left.field(dimension.left).type, right.field(dimension.right).type)
                for dimension in self._description.predicate.dimensions
            ]

    def _arrive(self, side: int, batch: Batch | None) -> Times:
        """Count the rows of a side, tell its window their times, and return these."""
        if batch is None:
            return _NO_ROWS
        state = self._states[side]
        assert batch.first == state.arrived, "the gate numbers the rows of a stream without gaps"
        assert state.liveness is not None
        times, _ = event_times(batch.rows.column(self._sides[side].event_time or TIME))
        state.liveness.append(times)
        state.arrived = batch.end
        return times

    def _live(
        self, side: int, batch: Batch | None, seqs: list[Int64], times: Times, arrived: tuple[int, int]
    ) -> Live:
        """The positions of the other side that the rows of a batch may meet."""
        other = self._states[1 - side]
        if batch is None or not batch.rows.num_rows:
            return Live(_NO_ROWS, _NO_ROWS)
        if self._self_join:
            end = np.arange(batch.first, batch.end)
        else:
            end = arrived[1 - side] + np.searchsorted(seqs[1 - side], seqs[side])
        if other.liveness is None:
            return Live(end, end)
        first = other.liveness.first(end, times)
        other.live = max(other.live, int(first[-1]))
        return Live(first, end)

    def _send_rows(self, side: int, batch: Batch, seq: Int64, live: Live) -> Iterator[Emit]:
        dimensions = self._description.predicate.dimensions
        keys = tuple(
            to_keys(dimension.column(side), batch.rows.column(dimension.column(side))) for dimension in dimensions
        )
        rows = ElementRows(batch.first, seq, keys, self._intervals(side, keys), live)
        packed = rows.to_arrow()
        yield Emit(Batch(f"probes.{SIDES[side]}", packed, first=batch.first, born=batch.born, memo=rows))
        for d in range(len(dimensions) if self._description.split_fields else 0):
            own = [f"key{d}", f"low{d}", f"high{d}", "first", "end", "seq"]
            part = packed.select(own).rename_columns(["key0", "low0", "high0", "first", "end", "seq"])
            yield Emit(Batch(f"probes.{SIDES[side]}.{d}", part, first=batch.first, born=batch.born))
        shown = self._description.selection.columns(side, batch.rows.schema)
        payload = batch.rows.select([*dict.fromkeys(each.column for each in shown), SEQ])
        yield Emit(Batch(f"payload.{SIDES[side]}", payload, first=batch.first, born=batch.born))

    def _intervals(self, side: int, keys: tuple[Keys, ...]) -> tuple[Interval, ...]:
        if self._bound is None:  # the other side has no rows yet: nothing to meet
            nothing = [(np.full(len(one), 1), np.full(len(one), 0)) for one in keys]
            return tuple(Interval(low, high) for low, high in nothing)
        return tuple(bound.intervals(side, one) for bound, one in zip(self._bound, keys, strict=True))


_NO_ROWS: Int64 = np.empty(0, dtype=np.int64)
