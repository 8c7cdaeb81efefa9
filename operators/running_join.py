"""The handle of a running join: it passes rows on to the join's topology and knows the types of both streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as with_changes
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from operators.engines.shared.engine import Engine
from operators.explanation import Explanation, explain
from operators.intake.late_rows import LATE, Reason, late_schema
from operators.intake.time_unit import finest
from operators.protocol.sides import LEFT, RIGHT
from operators.query.kinds import Kind
from operators.rebalancing import rebalanced
from operators.steady_results import SteadyReading
from operators.stream_types import check_fit, check_types
from topology import (
    Endpoint,
    Handle,
    InputGuard,
    LocalRuntime,
    LogLine,
    Metrics,
    Reading,
    Rows,
    RunningTopology,
    Runtime,
    Status,
    Topology,
    Wish,
    arrow_table,
    log,
)

if TYPE_CHECKING:
    from operators.join import StreamJoin


class RunningJoin(Handle):
    """Send rows to the streams, read result rows; what it has beyond other handles is about the join.

    The first rows of a stream fix its schema, or `pin` does. If the types of the two streams do not fit the join, these
    rows are refused and nothing changes. From when both schemas are known, all results have the schema that
    `result_schema` returns. Before, a kind that emits rows of one side alone shows the other's columns with type null
    if they are selected by name, and leaves them out otherwise: pin both streams before the first results are read.
    """

    def __init__(self, running: RunningTopology, join: StreamJoin) -> None:
        self.name = running.name
        self.join = join
        self._running = running
        self._schemas: dict[str, pa.Schema] = {}
        self._has_units = False
        self._finished: set[str] = set()

    @property
    def topology(self) -> Topology:
        return self._running.topology

    def send(self, stream: str, rows: Rows, source: str | None = None, *, offset: int | None = None) -> int:
        if not isinstance(rows, pa.RecordBatch | pa.Table):
            self.topology.require_input(stream)
            rows = arrow_table(f"stream '{stream}'", rows, self.schema(stream))  # once: a reader gives its rows once
        if stream not in self._schemas:
            self._running.check_rows(stream, rows, source, offset)  # rows that are refused do not fix the schema
            self.pin(stream, rows.schema)
        if self._has_units:
            check_fit(stream, rows, self.join.resolved.event_times[stream], self._time_types())
        return self._running.send(stream, rows, source, offset=offset)

    def next_offset(self, stream: str, source: str | None = None) -> int:
        return self._running.next_offset(stream, source)

    def flush(self, timeout: float | None = None) -> None:
        self._running.flush(timeout)

    def open(self, stream: str, *sources: str, behind: str | None = None) -> None:
        self._running.open(stream, *sources, behind=behind)

    def finish(self, stream: str | None = None, source: str | None = None) -> None:
        self._running.finish(stream, source)
        if source is None:
            self._finished |= set(self.join.stream_names) if stream is None else {stream}

    def open_reader(self, sink: str | None, after: int | None, take_over: bool) -> Reading:
        reading = self._running.open_reader(sink, after, take_over)
        if sink == LATE:
            return SteadyReading(reading, self._known_late_schema)
        if self.join.resolved.kind is Kind.INNER:  # rows that show both sides have all their columns
            return reading
        return SteadyReading(reading, self._known_result_schema)

    def acknowledge(self, number: int, sink: str | None = None) -> None:
        self._running.acknowledge(number, sink)

    def late(self, timeout: float | None = None) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows that take no part in the join: stream, source, offset, event_time, reason.

        The rows of each source come in the order of their offsets. Reading them is optional: unread rows wait, on disk
        beyond a bound, and are dropped when the join is stopped. `timeout`: as for `results`.
        """
        return self.results(LATE, timeout)

    def metrics(self) -> Metrics:
        return self._running.metrics()

    def status(self) -> Status:
        return self._running.status()

    def logs(self, after: int = -1) -> tuple[LogLine, ...]:
        return self._running.logs(after)

    def endpoint(self, stream: str, control: bool = False) -> Endpoint:
        endpoint = self._running.endpoint(stream, control)
        if stream in self.topology.sinks:
            schema = self._known_sink_schema(stream)
            return endpoint if schema is None else endpoint.with_schema(schema)
        named = self.join.named_columns(stream)
        return endpoint if named is None else endpoint.with_needed(named)

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        self._running.commit(stream, source, attempt, rows)

    def discard(self, stream: str, attempts: str) -> None:
        self._running.discard(stream, attempts)

    def rebalance(self, *, using: Engine | None = None, placement: Wish | None = None, **counts: Any) -> None:
        """As `Handle.rebalance`. Of the components those can be counted that an engine divides its work among.

        using:     another engine, or the same one with other settings; None: the one that runs.
        placement: on a cluster, how tasks share workers from now on; None: as before.

        `running.rebalance(po_join=4)` gives SPO-Join four PO-Join elements;
        `running.rebalance(using=il.ScaleJoin(threads=4))` goes on with another engine.
        """
        join = rebalanced(self.join, using, counts)
        self._running.change(join.topology(), placement, partial(RunningJoin, join=join))
        self.join = join

    def savepoint(self) -> str:
        return self._running.savepoint()

    def deactivate(self) -> None:
        self._running.deactivate()

    def activate(self) -> None:
        self._running.activate()

    def stop(self) -> None:
        self._running.stop()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._running.__exit__(kind, error, traceback)

    def pin(self, stream: str, schema: pa.Schema) -> None:
        description = self.topology.require_input(stream)
        if stream not in self._schemas:
            InputGuard(stream, description).pin(schema)  # a guard of its own: only its judgement is wanted
            self._check({**self.schemas, stream: schema})
        self._running.pin(stream, schema)
        self._learn(stream, schema)

    def schema(self, stream: str) -> pa.Schema | None:
        if stream not in self._schemas:
            known = self._running.schema(stream)  # another program may have sent its rows
            if known is None:
                return None
            self._learn(stream, known)
        return self._schemas[stream]

    def waiting_for(self) -> str:
        metrics = self.metrics()
        waiting = metrics.total("waiting_rows")
        sent = {stream: sum(task.rows_in for task in metrics.of(stream)) for stream in self.join.stream_names}
        silent = [stream for stream, rows in sent.items() if not rows and stream not in self._finished]
        if silent and (len(silent) == len(sent) or waiting):
            return "; ".join(
                f"waiting for stream '{stream}': no source has sent rows: send some, or finish('{stream}')"
                for stream in silent
            )
        if waiting:
            return (
                "rows wait until every open source has sent a row as late, or has ended: send more, finish the sources "
                "that are done, or set idle_after="
            )
        return ""

    def event_time_reached(self) -> str:
        awaited = [
            str(source["reached"])
            for task in self.metrics().tasks
            for source in task.details.get("sources", ())
            if source["awaited"] and source["reached"] is not None
        ]
        return awaited[0] if awaited else ""

    def explain(self) -> Explanation:
        """Show what runs, why, and what has been observed so far."""
        return explain(self.join.resolved, self.schemas, self.metrics())

    @property
    def schemas(self) -> dict[str, pa.Schema]:
        """The schemas of the streams that have sent rows or been pinned."""
        known = {stream: self.schema(stream) for stream in self.join.stream_names}
        return {stream: schema for stream, schema in known.items() if schema is not None}

    def result_schema(self) -> pa.Schema:
        """Return the columns of the results; those of a stream that has sent nothing yet have type null."""
        join, known = self.join.resolved, self.schemas
        return join.selection.result_schema((known.get(join.streams[LEFT]), known.get(join.streams[RIGHT])))

    def _learn(self, stream: str, schema: pa.Schema) -> None:
        """Remember the schema of a stream, and whether event times differ in type, as those of different units do."""
        self._schemas[stream] = schema
        times = self.join.resolved.event_times
        kinds = {self._schemas[each].field(column).type for each in self._schemas if (column := times[each])}
        self._has_units = len(kinds) > 1

    def _check(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Refuse types that do not fit the join."""
        check_types(self.join.resolved, schemas)

    def _time_types(self) -> list[pa.DataType | None]:
        """The types of the event times of the streams that are known; None where row numbers are the time."""
        times = self.join.resolved.event_times
        columns = [(times[stream], schema) for stream, schema in self.schemas.items()]
        return [None if column is None else schema.field(column).type for column, schema in columns]

    def _known_result_schema(self) -> pa.Schema | None:
        """The columns of the results; None while the schema of a stream is not known."""
        return self.result_schema() if len(self.schemas) == len(self.join.stream_names) else None

    def _known_sink_schema(self, sink: str) -> pa.Schema | None:
        """The columns of a sink of this join; None while they are not known."""
        if sink == LATE:
            return self.late_schema() if self.schemas else None
        return self._known_result_schema() if sink == self.topology.main_sink else None

    def late_schema(self) -> pa.Schema:
        """Return the columns of `late`; event_time has type null while no stream has sent anything."""
        kinds = self._time_types()
        return late_schema(finest(kinds) or (next(iter(kinds)) or pa.int64() if kinds else pa.null()))

    def _known_late_schema(self) -> pa.Schema | None:
        """The columns of `late`; None while the unit of its event times is not known."""
        return self.late_schema() if len(self.schemas) == len(self.join.stream_names) else None

    def sink_schema(self, sink: str) -> pa.Schema:
        return self.late_schema() if sink == LATE else self.result_schema()

    def warn_of_late_rows(self) -> None:
        """Log how many rows took no part so far, and why; log nothing if there are none."""
        metrics = self.metrics()
        counts = {reason.text: int(metrics.total(reason.metric)) for reason in Reason}
        total = sum(counts.values())
        if total:
            shown = ", ".join(f"{count} {text}" for text, count in counts.items() if count)
            log.warning("%d rows take no part in the join: %s; collect_with_late() or late() shows them", total, shown)


def start(
    join: StreamJoin,
    runtime: Runtime | None,
    sources: Mapping[str, Sequence[str]] | None,
    *,
    name: str | None = None,
    detached: bool = False,
    replace: bool = False,
) -> RunningJoin:
    """Launch the topology of a join and announce its sources.

    Results that must be the same after a failure have one order, so a durable runtime emits them in strict order.
    """
    runtime = runtime or LocalRuntime()
    if runtime.is_durable:
        join = with_changes(join, ordering="strict")
    make_handle = partial(RunningJoin, join=join)
    launched = runtime.launch(join.topology(), name=name, detached=detached, replace=replace, make_handle=make_handle)
    running = make_handle(launched)
    try:
        for stream, names in (sources or {}).items():
            running.open(stream, *names)
    except BaseException:
        running.stop()
        raise
    return running
