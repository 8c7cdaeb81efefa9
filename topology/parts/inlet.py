"""The inlet: takes the place of an input in a topology that is part of another, and is fed by components there.

What an input does for rows from outside, an inlet does for rows from other tasks. Each upstream task is a physical
source, named after its component and, if that has several tasks, its number. Each has offsets of its own, so what comes
after depends on the output of each task, and not on how the outputs of several tasks interleave. An upstream input is
not a source itself: it names those that feed it.

In: batches, watermarks, silence and ends of upstream tasks.
Out: the same as an input emits: batches with source and offset, announcements and ends of sources; and watermarks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from topology.entry.input_guard import InputGuard
from topology.graph.arrow_rows import packed, unpacked
from topology.graph.components import DEFAULT_STREAM, Bolt, Emit, Input, Origin, Task, TaskContext
from topology.graph.event_time import time_as_json, time_from_json
from topology.graph.messages import Batch, End, Idle, Time, Watermark

UNORDERED = 1
"""The label of a batch whose source promises by watermarks only: its event times are in no order."""


@dataclass(frozen=True)
class Inlet(Bolt):
    """Feeds a part with rows of other components.

    input:     the input in whose place it stands.
    inputs:    the upstream components that are inputs themselves.
    unordered: the upstream components whose event times are in no order; their watermarks say what is complete.
    """

    input: Input
    inputs: frozenset[str] = frozenset()
    unordered: frozenset[str] = frozenset()
    beside = "inputs"
    snapshots = True

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return self.input.outputs

    @property
    def note(self) -> str:
        return self.input.note

    @property
    def watermark_lag(self) -> Time | None:
        return self.input.watermark_lag

    def build(self, context: TaskContext) -> Task:
        return InletTask(self, context)


@dataclass
class _Upstream:
    """One upstream task.

    name:    the source that it is; of an input, the name under which progress waits for its first source.
    sent:    the rows that it has sent, if it is no input.
    open:    the sources of an input that have not ended: the input's names for them, and ours.
    latest:  the greatest event time of each source.
    waiting: progress waits for the first source of an input.
    """

    name: str
    is_input: bool
    unordered: bool
    sent: int = 0
    open: dict[str, str] = field(default_factory=dict)
    latest: dict[str, Time] = field(default_factory=dict)
    waiting: bool = False

    def state(self) -> list[Any]:
        """What it goes on from, as JSON."""
        return [self.sent, self.open, {name: time_as_json(time) for name, time in self.latest.items()}, self.waiting]

    def resume(self, state: list[Any]) -> None:
        """Go on from a state."""
        self.sent, self.open, latest, self.waiting = state
        for name, written in latest.items():
            time = time_from_json(written)
            assert time is not None, "a row that counts has a time"
            self.latest[name] = time


class InletTask(Task):
    """Announces all upstream tasks before anything else, because those that are not known hold nobody back."""

    merges_watermarks = False

    def __init__(self, description: Inlet, context: TaskContext) -> None:
        self._guard = InputGuard(context.component, description.input)
        self._upstream = _upstream_tasks(description, context.origins)
        self._announced = False

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        upstream = self._upstream[origin.index]
        yield from self._announce()
        if upstream.is_input:
            yield from self._open(upstream, batch.source)
            source, first = upstream.open[batch.source], batch.first
        else:
            source, first = upstream.name, upstream.sent
            upstream.sent += batch.num_rows
        unordered = upstream.unordered or UNORDERED in batch.labels  # an inlet may feed another
        times = self._check(batch.rows, upstream, source, first, unordered)
        labels = (UNORDERED,) if unordered else ()
        yield Emit(Batch(DEFAULT_STREAM, batch.rows, first, source, times, batch.born, labels))

    def on_watermark(self, watermark: Watermark, origin: Origin) -> Iterable[Emit]:
        upstream = self._upstream[origin.index]
        yield from self._announce()
        if upstream.is_input and watermark.source:
            yield from self._open(upstream, watermark.source)
            if watermark.time is not None:
                yield _promise(watermark.time, upstream.open[watermark.source])
        elif not watermark.source and watermark.time is not None:
            sources = upstream.open.values() if upstream.is_input else (upstream.name,)
            for source in sources:
                yield _promise(watermark.time, source)

    def on_source_idle(self, idle: Idle, origin: Origin) -> Iterable[Emit]:
        upstream = self._upstream[origin.index]
        yield from self._announce()
        if upstream.is_input and idle.source:
            yield from self._open(upstream, idle.source)
            yield Emit(Idle(DEFAULT_STREAM, upstream.open[idle.source]))
        elif upstream.is_input:
            yield from self._stop_waiting(upstream)
            yield Emit(Idle(DEFAULT_STREAM))
        elif not idle.source:
            yield Emit(Idle(DEFAULT_STREAM, upstream.name))

    def on_source_end(self, end: End, origin: Origin) -> Iterable[Emit]:
        upstream = self._upstream[origin.index]
        yield from self._announce()
        if upstream.is_input:
            yield from self._open(upstream, end.source)
            yield Emit(End(DEFAULT_STREAM, upstream.open.pop(end.source)))

    def on_input_end(self, origin: Origin) -> Iterable[Emit]:
        upstream = self._upstream[origin.index]
        yield from self._announce()
        yield from self._stop_waiting(upstream)
        for source in upstream.open.values() if upstream.is_input else (upstream.name,):
            yield Emit(End(DEFAULT_STREAM, source))

    def on_idle(self) -> Iterable[Emit]:
        return self._announce()

    def snapshot(self) -> bytes:
        schema = self._guard.schema
        known = [] if schema is None else [pa.RecordBatch.from_pylist([], schema)]
        return packed({"announced": self._announced, "upstream": [each.state() for each in self._upstream]}, known)

    def restore(self, snapshot: bytes) -> None:
        facts, known = unpacked(snapshot)
        self._announced = facts["announced"]
        for each, state in zip(self._upstream, facts["upstream"], strict=True):
            each.resume(state)
        for rows in known:
            self._guard.pin(rows.schema)

    def check_invariants(self) -> None:
        # no two upstream tasks are the same source
        names = [name for upstream in self._upstream for name in (upstream.name, *upstream.open.values())]
        assert len(names) == len(set(names)), names

    def _announce(self) -> Iterator[Emit]:
        """Announce the sources that are known from the start; an input among others is waited for as a whole."""
        if self._announced:
            return
        self._announced = True
        for upstream in self._upstream:
            if not upstream.is_input or len(self._upstream) > 1:
                upstream.waiting = upstream.is_input
                yield Emit(Watermark(None, DEFAULT_STREAM, upstream.name))

    def _open(self, upstream: _Upstream, source: str) -> Iterator[Emit]:
        """Announce a source of an input that has not been heard of."""
        if source not in upstream.open:
            alone = len(self._upstream) == 1
            upstream.open[source] = name = source if alone else f"{upstream.name[1:]}/{source}"
            yield Emit(Watermark(None, DEFAULT_STREAM, name))
            yield from self._stop_waiting(upstream)

    def _stop_waiting(self, upstream: _Upstream) -> Iterator[Emit]:
        if upstream.waiting:
            upstream.waiting = False
            yield Emit(End(DEFAULT_STREAM, upstream.name))

    def _check(
        self, rows: pa.RecordBatch, upstream: _Upstream, source: str, first: int, unordered: bool
    ) -> tuple[Time, Time] | None:
        """Refuse rows that do not fit the input, or that go backwards; return what their times promise, if anything."""
        if unordered:
            self._guard.pin(rows.schema)
            return None
        times = self._guard.check(rows, source, first, upstream.latest.get(source))
        if times is not None:
            upstream.latest[source] = times[1]
        return times


def _promise(time: Time, source: str) -> Emit:
    return Emit(Watermark(time, DEFAULT_STREAM, source))


def _upstream_tasks(description: Inlet, origins: tuple[Origin, ...]) -> list[_Upstream]:
    """Name the upstream tasks: by component and, where it has several tasks, their numbers, in the order of these."""
    tasks = Counter(origin.component for origin in origins)
    distinct = len({(origin.component, origin.task) for origin in origins}) == len(origins)
    found = []
    for origin in origins:
        is_input = origin.component in description.inputs
        name = origin.component
        if tasks[name] > 1:
            # two streams of a part may come from two of its components, whose tasks have the same numbers
            number, most = (origin.task, tasks[name] - 1) if distinct else (origin.index, len(origins) - 1)
            name = f"{name}/{number:0{len(str(most))}d}"
        found.append(_Upstream(f"#{name}" if is_input else name, is_input, origin.component in description.unordered))
    return found
