"""What the gate does with each message: rows wait, are numbered, or are late."""

from __future__ import annotations

import logging
import math
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import chain

import numpy as np
import pyarrow as pa

from operators.intake.gate_state import GateState
from operators.intake.kept_steps import KeptSteps
from operators.intake.late_rows import LATE_STREAM, Late, Reason, late_batch
from operators.intake.retention import Retention
from operators.intake.scale_gate import Ready, ScaleGate
from operators.intake.source_progress import described
from operators.intake.step_offsets import StepOffsets
from operators.intake.time_unit import TIME
from operators.intake.unit_watch import UnitWatch
from operators.intake.waiting_run import SourceName
from operators.query.durations import Duration, in_unit
from operators.values.takeable_types import take_rows
from topology import (
    UNORDERED,
    Batch,
    DecidingTask,
    Decision,
    Emit,
    End,
    Facts,
    Idle,
    Origin,
    Punctuation,
    TaskState,
    Time,
    Times,
    Watermark,
    event_times,
    packed,
    time_as_json,
    time_from_json,
    unpacked,
)

log = logging.getLogger("interlace")

SEQ = "#seq"
LATE_SAMPLES = 5
"""So many of the last late rows of each reason are shown to people."""

_GREATEST = Fraction(sys.float_info.max)
_ANY_ORDER = 2**64
"""A bound beyond any difference of two times."""

_REASONS = {reason.text: reason for reason in Reason}
_REMEDIES = {
    Reason.JOINED_TOO_LATE: "announce every source before the first rows are sent (launch(..., sources=...) or "
    "running.open(...))",
    Reason.WAS_IDLE: "it was silent for longer than idle_after: raise that, or keep it sending",
}


class GateTask(DecidingTask):
    """Feeds a `ScaleGate`, is its only reader, and numbers the positions of each stream.

    Which rows pass together depends on when they come, and whether a row is late on what had passed before it. So a
    step is a decision: how many rows of each source it took. All else follows from the rows.
    """

    def __init__(
        self,
        event_time: Mapping[str, str | None],
        step_rows: int,
        spill_directory: str | None = None,
        out_of_order: Mapping[str, Duration] | None = None,
        retention: Retention | None = None,
        check: Callable[[Mapping[str, pa.Schema]], None] | None = None,
        announces: bool = False,
        kept: KeptSteps | None = None,
    ) -> None:
        self._event_time = event_time
        self._retention = retention
        self._check = check
        self._announces = announces
        self._kept = kept
        self._is_behind = False  # the tasks downstream have not got again what is kept
        self._shown: set[str] = set()
        self._schemas: dict[str, pa.Schema] = {}
        self._step: Ready | None = None
        self._step_rows = step_rows
        self._out_of_order = out_of_order or {}
        self._bounds: dict[str, Time] = {}
        self._bounded: set[SourceName] = set()  # those with a bound of their own
        self._gate = ScaleGate(step_rows=step_rows, spill_directory=spill_directory)
        self._units = UnitWatch(self._gate)
        self._delays: dict[SourceName, Time] = {}  # bounds that came before the type of their stream
        self._offsets = StepOffsets()
        self._rows_of_step: dict[tuple[str, str], tuple[int | None, int]] = {}
        self._sources: dict[str, set[SourceName]] = {stream: set() for stream in event_time}
        self._known: dict[tuple[str, str], SourceName] = {}
        self._announced: set[str] = set()
        self._ended: set[str] = set()
        self._positions = dict.fromkeys(event_time, 0)
        self._fresh = 0
        self._late_counts = dict.fromkeys(Reason, 0)
        self._warned: set[tuple[SourceName, Reason]] = set()
        self._late_samples: dict[Reason, deque[Facts]] = {reason: deque(maxlen=LATE_SAMPLES) for reason in Reason}

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        report = self.take(batch, origin)
        return chain(report, self._release()) if self._fresh >= self._step_rows else report

    def take(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        source = self._source(origin.component, batch.source)
        if source.stream not in self._schemas:
            self._schemas[source.stream] = batch.rows.schema
            if self._check is not None:
                self._check(self._schemas)
            self._learn(source.stream)
        column = self._event_time[source.stream]
        sent: pa.Array | Times
        if column is None:
            sent = np.arange(batch.first, batch.end, dtype=np.int64)
            late = self._gate.add(source, batch.rows, sent, batch.born)
        else:
            sent = batch.rows.column(column)
            late = self._add(source, batch, sent)
        self._fresh += batch.num_rows
        ordered = not (source.stream in self._out_of_order or source in self._bounded or UNORDERED in batch.labels)
        kept = batch.num_rows - (0 if late is None else len(late.rows))
        self._offsets.take(source, batch.first, batch.end, kept, ordered)
        report: list[Emit] = []
        if late is not None:
            times = sent if isinstance(sent, pa.Array) else pa.array(sent)
            report.append(self._report(source, batch.first, times, late))
        return report

    def on_watermark(self, watermark: Watermark, origin: Origin) -> Iterable[Emit]:
        source = self._source(origin.component, watermark.source)
        if watermark.bound is not None:
            self._bounded.add(source)
            if self._event_time[source.stream] is not None and source.stream not in self._schemas:
                self._delays[source] = watermark.bound
            else:
                self._gate.open(source, self._units.bound(source.stream, watermark.bound))
        if watermark.time is not None:
            self._gate.promise(source, self._units.promise(source.stream, watermark.time))
        return ()

    def on_source_idle(self, idle: Idle, origin: Origin) -> Iterable[Emit]:
        if idle.source:
            self._gate.set_idle(self._source(origin.component, idle.source))
        else:
            self._announced.add(origin.component)  # the stream has no source: do not wait for its first rows
        return ()

    def on_source_end(self, end: End, origin: Origin) -> Iterable[Emit]:
        self._gate.end([self._source(origin.component, end.source)])
        return ()

    def on_input_end(self, origin: Origin) -> Iterable[Emit]:
        self._announced.add(origin.component)
        self._ended.add(origin.component)
        self._gate.end(self._sources[origin.component])
        return ()

    def on_idle(self) -> Iterable[Emit]:
        if self._is_behind:
            self._is_behind = False
            return chain(self._again(), self._release())
        return self._release()

    def on_end(self) -> Iterable[Emit]:
        yield from self._release()
        self._gate.close()

    @property
    def decision(self) -> Decision:
        step = self._step
        assert step is not None, "a decision belongs to a step"
        took = [[source.stream, source.name, count] for source, count in step.took.items()]
        return Decision(step.end - 1, {"took": took, "unit": self._units.unit}, self._reached())

    @property
    def step_rows(self) -> Mapping[tuple[str, str], tuple[int | None, int]]:
        return self._rows_of_step

    def repeat(self, choice: Facts) -> Iterable[Emit]:
        self._fresh = 0
        self._units.settle(choice["unit"])
        took = {SourceName(source, stream): count for stream, source, count in choice["took"]}
        return self._emitted(self._gate.repeat(took))

    def state(self) -> TaskState:
        facts, waiting = self._gate.state().written()
        streams = list(self._schemas)
        own = {
            "positions": self._positions,
            "late": {reason.name: count for reason, count in self._late_counts.items()},
            "announced": sorted(self._announced),
            "streams": streams,
            "unit": self._units.unit,
            "delays": [[*source, time_as_json(bound)] for source, bound in self._delays.items()],
        }
        empty = [pa.RecordBatch.from_pylist([], self._schemas[stream]) for stream in streams]
        return TaskState({**facts, **own}, (*empty, *waiting))

    def resume(self, state: TaskState) -> Iterable[Emit]:
        self._go_on(state)
        yield from self._columns(self._positions)
        yield Emit(Punctuation(self._gate.merged - 1))

    def snapshot(self) -> bytes:
        assert self._kept is not None, "a gate with snapshots keeps its last steps"
        self._kept.forget(self._reached())
        state = self.state()
        steps, rows = self._kept.written()
        facts = {
            "state": state.facts,
            "batches": len(state.rows),
            "shown": sorted(self._shown),
            "ended": sorted(self._ended),
            "presumed": self._units.presumed(),
            "steps": steps,
        }
        return packed(facts, (*state.rows, *rows))

    def restore(self, snapshot: bytes) -> None:
        assert self._kept is not None, "a gate with snapshots keeps its last steps"
        facts, rows = unpacked(snapshot)
        batches = facts["batches"]
        self._go_on(TaskState(facts["state"], tuple(rows[:batches])), hears_again=False)
        self._shown.update(facts["shown"])
        self._ended.update(facts["ended"])
        self._units.presume(facts["presumed"])
        self._kept.read(facts["steps"], iter(rows[batches:]))
        self._is_behind = True

    def _go_on(self, state: TaskState, hears_again: bool = True) -> None:
        rows = iter(state.rows)
        facts = state.facts
        self._schemas = {stream: next(rows).schema for stream in facts["streams"]}
        self._units.resume(facts["unit"], kinds_of(self._event_time, self._schemas))
        for name, stream, written_bound in facts["delays"]:
            bound = time_from_json(written_bound)
            assert bound is not None, "a bound is a length"
            self._delays[SourceName(name, stream)] = bound
        self._gate.resume(gate := GateState.read(facts, rows), hears_again)
        for source, parts in gate.sources:
            self._offsets.wait(source.name, sum(len(part.times) for part in parts))
            self._known[source.name.stream, source.name.name] = source.name
            self._sources[source.name.stream].add(source.name)
        self._positions.update(facts["positions"])
        self._announced.update(facts["announced"])
        self._late_counts.update({Reason[name]: count for name, count in facts["late"].items()})

    @property
    def state_bytes(self) -> int:
        return self._gate.waiting_bytes

    def metrics(self) -> Mapping[str, float]:
        return {
            "merged": float(self._gate.merged),
            "late": float(sum(self._late_counts.values()) - self._late_counts[Reason.NO_EVENT_TIME]),
            **{reason.metric: float(count) for reason, count in self._late_counts.items()},
            "waiting_rows": float(self._gate.waiting),
            "spilled_bytes": float(self._gate.spilled_bytes),
        }

    def details(self) -> Facts:
        """The sources (see `source_progress`), streams of which nothing is known, and the last late rows by reason."""
        return {
            "sources": described(self._gate.progress(), self._units.kinds(kinds_of(self._event_time, self._schemas))),
            "unknown_streams": [stream for stream in self._event_time if stream not in self._announced],
            "late": {
                reason.text: {"rows": self._late_counts[reason], "samples": list(samples)}
                for reason, samples in self._late_samples.items()
                if samples
            },
        }

    def check_invariants(self) -> None:
        # every row in the order has its position in its stream
        assert sum(self._positions.values()) == self._gate.merged
        self._gate.check_invariants()

    def _source(self, stream: str, name: str) -> SourceName:
        source = self._known.get((stream, name))
        if source is None:
            source = self._known[stream, name] = SourceName(name, stream)
            self._announced.add(stream)
            self._sources[stream].add(source)
            self._gate.open(source)
        return source

    def _learn(self, stream: str) -> None:
        """Count in the unit of a stream whose type has just become known, if it is finer than that of the others."""
        column = self._event_time[stream]
        if column is None:
            return
        self._units.learn(stream, self._schemas[stream].field(column).type)
        for source in [source for source in self._delays if source.stream == stream]:
            self._gate.open(source, self._units.bound(stream, self._delays.pop(source)))

    def _add(self, source: SourceName, batch: Batch, sent: pa.Array) -> Late | None:
        """Add the rows that have a time; return those that are late or have none, as row numbers of the batch."""
        times, valid = event_times(sent)
        times = self._units.times(source.stream, times)
        bound = self._bound(source.stream, sent.type, times) if self._out_of_order else None
        if UNORDERED in batch.labels:
            bound = _ANY_ORDER if times.dtype == np.int64 else math.inf
        if valid is None:
            return self._gate.add(source, batch.rows, times, batch.born, bound)
        timed = np.flatnonzero(valid)
        late = self._gate.add(source, take_rows(batch.rows, np.flatnonzero(valid)), times[valid], batch.born, bound)
        untimed = Late.mark(None, ~valid, Reason.NO_EVENT_TIME)
        if late is None or untimed is None:
            return untimed if late is None else Late(timed[late.rows], late.reasons)
        return untimed.and_also(Late(timed[late.rows], late.reasons))

    def _bound(self, stream: str, kind: pa.DataType, times: Times) -> Time | None:
        """Return the bound of a stream in the unit of its event time; None: its sources are in order."""
        if stream not in self._bounds and stream in self._out_of_order:
            exact = in_unit(self._out_of_order[stream], kind)
            # whole times differ by whole numbers, so rounding down changes nothing
            self._bounds[stream] = math.floor(exact) if times.dtype == np.int64 else float(min(exact, _GREATEST))
        bound = self._bounds.get(stream)
        return None if bound is None else self._units.bound(stream, bound)

    def _report(self, source: SourceName, first: int, times: pa.Array, late: Late) -> Emit:
        """Count late rows and emit them on the late output."""
        sent = sum(self._late_counts.values())
        for reason, count in late.counts().items():
            self._late_counts[reason] += count
            if reason in _REMEDIES and (source, reason) not in self._warned:
                self._warned.add((source, reason))
                log.warning(
                    "stream '%s': %d rows of source '%s' are late and left out (%s), perhaps more later: %s",
                    source.stream,
                    count,
                    source.name,
                    reason.text,
                    _REMEDIES[reason],
                )
        rows = late_batch(source.stream, source.name, first, times, late)
        for row in rows.slice(max(0, rows.num_rows - LATE_SAMPLES)).to_pylist():
            self._late_samples[_REASONS[row["reason"]]].append({**row, "event_time": str(row["event_time"])})
        return Emit(Batch(LATE_STREAM, rows, first=sent))

    def _release(self) -> Iterator[Emit]:
        """Emit all rows that may pass, a step at a time, and keep them for a new life if there may be one."""
        return self._released() if self._kept is None else self._keep(self._kept, self._released())

    def _keep(self, kept: KeptSteps, emits: Iterable[Emit]) -> Iterator[Emit]:
        for emit in emits:
            message = emit.message
            assert isinstance(message, Batch | Punctuation), "a step consists of rows and its end"
            kept.add(message)
            if isinstance(message, Punctuation) and kept.begins_block:
                kept.begin_block(message.seq, self._positions, self._reached())
            yield emit

    def _again(self) -> Iterator[Emit]:
        """Emit what is kept."""
        assert self._kept is not None, "a snapshot has kept steps"
        seq, positions = self._kept.begin
        if seq >= 0:
            yield from self._columns(positions)
            yield Emit(Punctuation(seq))
        for message in self._kept.messages():
            yield Emit(message)

    def _columns(self, positions: Mapping[str, int]) -> Iterator[Emit]:
        """Say at which position the next rows of each stream that is known begin, with a batch without rows."""
        for stream, schema in self._schemas.items():
            yield Emit(Batch(stream, self._without_rows(stream, schema), first=positions[stream]))

    def _released(self) -> Iterator[Emit]:
        self._fresh = 0
        if len(self._announced) < len(self._event_time):
            return  # it is still unknown when the rows of a stream begin
        if self._gate.passed is None and not self._gate.is_held():
            unknown = {stream for stream, column in self._event_time.items() if column is not None}
            self._units.prepare_for(unknown - self._schemas.keys() - self._ended)
        while (step := self._gate.next_ready()) is not None:
            yield from self._new_schemas(step.first)
            yield from self._emitted(step)

    def _emitted(self, step: Ready) -> Iterator[Emit]:
        for stream in self._event_time:
            if stream in step.streams:
                yield Emit(self._numbered(stream, step))
        self._step = step
        self._rows_of_step = self._offsets.release(step.took)
        yield Emit(Punctuation(step.end - 1, step.born))

    def _new_schemas(self, seq: int) -> Iterator[Emit]:
        """Before the row `seq`, emit a batch without rows for each stream whose schema has become known.

        Results may show its columns as nulls before its first rows have passed. Elsewhere the handle completes them.
        """
        if not self._announces or len(self._shown) == len(self._schemas):
            return
        for stream in self._event_time:
            if stream in self._schemas and stream not in self._shown and not self._positions[stream]:
                yield Emit(Batch(stream, self._without_rows(stream, self._schemas[stream])))
        self._shown |= self._schemas.keys()
        yield Emit(Punctuation(seq - 1))

    def _reached(self) -> Facts:
        """Where the gate stands, as far as retention asks for it."""
        passed = self._gate.passed
        if self._retention is None or passed is None:
            return {}
        kinds = kinds_of(self._event_time, self._schemas)
        return self._retention.reached(self._positions, passed[0], kinds, self._units.unit)

    def _without_rows(self, stream: str, schema: pa.Schema) -> pa.RecordBatch:
        """The columns of a stream as they leave the gate."""
        kind = self._time_type(stream)
        added = [] if kind is None else [pa.field(TIME, kind)]
        return pa.RecordBatch.from_pylist([], pa.schema([*schema, *added, pa.field(SEQ, pa.int64())]))

    def _time_type(self, stream: str) -> pa.DataType | None:
        """The type of the column of times that is added to a stream; None where a column of its own holds them."""
        return pa.int64() if self._event_time[stream] is None else self._units.added(stream)

    def _numbered(self, stream: str, step: Ready) -> Batch:
        merged = step.streams[stream]
        first = self._positions[stream]
        self._positions[stream] += len(merged.seq)
        rows = merged.rows
        kind = self._time_type(stream)
        if kind is not None:
            rows = rows.append_column(TIME, pa.array(merged.times()).view(kind))
        return Batch(stream, rows.append_column(SEQ, pa.array(merged.seq)), first=first, born=step.born)


def kinds_of(event_time: Mapping[str, str | None], schemas: Mapping[str, pa.Schema]) -> dict[str, pa.DataType | None]:
    """The type of the event time of each stream that is known; None where the row's number is its time."""
    return {
        stream: None if column is None else schemas[stream].field(column).type
        for stream, column in event_time.items()
        if stream in schemas
    }
