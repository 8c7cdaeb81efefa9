"""The front door: describe a join of streams, run it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import pyarrow as pa

from operators.auto_engine import choose_engine
from operators.collector import Collector
from operators.condition import Condition, normalise
from operators.engine import ROUTER, ElementPlan, Engine
from operators.errors import JoinError, PredicateError
from operators.expressions import Expression
from operators.feeding import Feed, Feeding, sources_of
from operators.gate import DEFAULT_STEP_ROWS, Gate
from operators.key_types import key_type
from operators.orderings import Ordering, ordering_of
from operators.predicate import LEFT, RIGHT, Predicate
from operators.router import JoinSide, Router
from operators.running_join import RunningJoin
from operators.selection import Selection
from operators.sql import parse_condition, parse_query
from operators.sql_window import ParameterValue, WindowClause
from operators.windows import CountWindow, TimeWindow, Window
from topology import Input, LocalRuntime, Runtime, SchemaError, Topology, TopologyBuilder
from topology.plan import Plan

Rows: TypeAlias = pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]
"""The rows of one physical source."""


@dataclass(frozen=True)
class StreamJoin:
    """A join of two streams over sliding windows, or of a stream with itself.

    left, right: the two roles; each names a stream, unless `streams` says which. The same name twice is a self-join,
                 whose roles are then called name1 and name2.
    on:          the condition, as SQL text or as column expressions.
    window:      a window for both sides, or a pair: the rows of a side that later rows of the other may meet.
    select:      the columns to show, such as ["R.id", "S.id"]; None: all of both.
    event_time:  the event-time column, or a mapping of stream to column; None: the number of the row in its source.
    using:       the engine; "auto" chooses.
    streams:     the stream of each role, where the roles have names of their own.
    ordering:    "strict" orders results by the later row, then by the earlier; "outer" only by the later row; a number
                 k orders groups of k rows; "none" sends results as they are found (see `operators.orderings`).
    step_rows:   the most rows handled together; fewer bound the latency under load, more raise the throughput.
    """

    left: str
    right: str
    on: str | Expression
    window: Window | tuple[Window, Window]
    select: Sequence[str] | None = None
    event_time: str | Mapping[str, str] | None = None
    using: Engine | Literal["auto"] = "auto"
    streams: Mapping[str, str] | None = None
    ordering: Ordering | int = "strict"
    step_rows: int = DEFAULT_STEP_ROWS
    selection: Selection | None = field(default=None, repr=False)
    condition: Condition = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._set("ordering", ordering_of(self.ordering))
        if isinstance(self.step_rows, bool) or not isinstance(self.step_rows, int) or self.step_rows < 1:
            raise JoinError(f"step_rows must be a whole number of 1 or more, not {self.step_rows!r}")
        if not isinstance(self.using, Engine) and self.using != "auto":
            raise JoinError(f"using must be an engine such as SPOJoin(), or 'auto', not {self.using!r}")
        if self.left == self.right:
            self._set("streams", {f"{self.left}1": self._stream(self.left), f"{self.left}2": self._stream(self.left)})
            if isinstance(self.on, str):
                self._set("on", parse_query(f"SELECT * FROM {self.left} WHERE {self.on}").condition)
            self._set("right", f"{self.left}2")
            self._set("left", f"{self.left}1")
        for role in self.streams or {}:
            if role not in self.roles:
                raise JoinError(f"streams names '{role}', which is no role of this join; its roles: {self.roles}")
        condition = parse_condition(self.on, *self.roles) if isinstance(self.on, str) else self.on
        if not isinstance(condition, Expression):
            raise PredicateError(f"on must be SQL text or a column expression, not {condition!r}")
        self._set("condition", normalise(condition, *self.roles))
        for window in self.windows:
            if not isinstance(window, Window):
                raise JoinError(
                    f"window must be a CountWindow, a TimeWindow or an UnboundedWindow, or a pair, not {window!r}"
                )
        if self.selection is None:
            self._set("selection", Selection.of(self.roles, self.select))
        for stream in self.event_time if isinstance(self.event_time, Mapping) else ():
            if stream not in self.stream_names:
                raise JoinError(f"event_time names '{stream}', which is no stream of this join: {self.stream_names}")

    @classmethod
    def from_sql(
        cls,
        sql: str,
        *,
        window: Window | tuple[Window, Window] | None = None,
        parameters: Mapping[str, ParameterValue] | None = None,
        event_time: str | Mapping[str, str] | None = None,
        using: Engine | Literal["auto"] = "auto",
        ordering: Ordering | int = "strict",
        step_rows: int = DEFAULT_STEP_ROWS,
    ) -> StreamJoin:
        """Read a query such as ``SELECT R.id, S.id FROM R, S WHERE R.a < S.a WINDOW AS (SLIDE INTERVAL '10' ON '60')``.

        window:     takes the place of a WINDOW clause.
        parameters: the values of names in the WINDOW clause: ``INTERVAL 'D' ON 'W'`` with {"D": 10, "W": 60}.
        """
        query = parse_query(sql, parameters, read_window=window is None)
        if window is None and query.window is None:
            raise JoinError("the query has no WINDOW clause: add one, or give window=")
        roles = (query.left, query.right)
        return cls(
            query.left,
            query.right,
            query.condition,
            window if window is not None else _window(query.window),
            event_time=event_time,
            using=using,
            streams={query.left: query.left_stream, query.right: query.right_stream},
            ordering=ordering,
            step_rows=step_rows,
            selection=Selection(roles, query.select),
        )

    @property
    def roles(self) -> tuple[str, str]:
        """The names of the two sides."""
        return (self.left, self.right)

    @property
    def windows(self) -> tuple[Window, Window]:
        """The window of each side."""
        return self.window if isinstance(self.window, tuple) else (self.window, self.window)

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The distinct streams: two, or one for a self-join."""
        return tuple(dict.fromkeys(self._stream(role) for role in self.roles))

    @property
    def predicate(self) -> Predicate:
        """The first alternative of the condition."""
        return self.condition.branches[0]

    @property
    def engine(self) -> Engine:
        """The engine that runs the join."""
        return choose_engine(self.predicate).engine if self.using == "auto" else self.using

    def topology(self) -> Topology:
        """The graph of processing elements."""
        assert self.selection is not None
        engine = self.engine
        builder = TopologyBuilder(f"{self.left} join {self.right}")
        for stream in self.stream_names:
            check = StreamCheck(stream, self.predicate, self.selection, tuple(map(self._stream, self.roles)))
            builder.input(stream, Input(event_time=self.event_time_of(stream), check=check))
        times = tuple((stream, self.event_time_of(stream)) for stream in self.stream_names)
        gate = builder.bolt(engine.gate, Gate(times, self.step_rows))
        for stream in self.stream_names:
            gate.global_grouping(stream)
        sides = (self._side(LEFT, engine), self._side(RIGHT, engine))
        chosen = f"auto: {choose_engine(self.predicate)}" if self.using == "auto" else ""
        router = builder.bolt(ROUTER, Router(sides, self.predicate, self.selection, engine.split_fields, chosen))
        for stream in self.stream_names:
            router.global_grouping(engine.gate, stream)
        ordering = ordering_of(self.ordering)
        plan = ElementPlan(self.predicate, ordering, self.windows, self.step_rows)
        answering = engine.add_elements(builder, plan)
        collector = builder.bolt(engine.collector, Collector(self.selection, ordering))
        for stream in ("limits", "payload.left", "payload.right"):
            collector.global_grouping(ROUTER, stream)
        for element in answering:
            collector.global_grouping(element, "matches.left").global_grouping(element, "matches.right")
        builder.sink("results").global_grouping(engine.collector)
        return builder.build()

    def plan(self) -> Plan:
        """What would run, without running it."""
        return self.topology().plan()

    def launch(
        self, runtime: Runtime | None = None, *, sources: Mapping[str, Sequence[str]] | None = None
    ) -> RunningJoin:
        """Start the join and return its handle.

        sources: the physical sources of each stream. A source that is not named here should be announced with
                 `running.open` before others have sent rows of a later time than its first.
        """
        for stream in sources or {}:
            if stream not in self.stream_names:
                raise JoinError(f"sources names '{stream}', which is no stream of this join: {self.stream_names}")
        assert self.selection is not None
        running = RunningJoin((runtime or LocalRuntime()).launch(self.topology()), self)
        for stream, names in (sources or {}).items():
            running.open(stream, *names)
        return running

    def collect(self, inputs: Mapping[str, Rows | Mapping[str, Rows]], runtime: Runtime | None = None) -> pa.Table:
        """Run the join over finite inputs and return all results, in result order.

        inputs: for each stream its rows, or a mapping of source name to rows. A plain table is one source named after
                its stream. The order of the result is that of event time; see `event_time`.
        """
        feeds = self._feeds(inputs)
        sources = {stream: [feed.source for feed in feeds if feed.stream == stream] for stream in self.stream_names}
        with self.launch(runtime, sources=sources) as running:
            for feed in feeds:
                if feed.schema is not None:
                    running.pin(feed.stream, feed.schema)
            with Feeding(running, feeds) as feeding:
                batches = list(running.results())
            feeding.raise_error()
            schema = running.result_schema()
        return pa.Table.from_batches([batch.cast(schema) for batch in batches], schema)

    def _feeds(self, inputs: Mapping[str, Rows | Mapping[str, Rows]]) -> list[Feed]:
        missing = [stream for stream in self.stream_names if stream not in inputs]
        unknown = [stream for stream in inputs if stream not in self.stream_names]
        if missing or unknown:
            raise JoinError(
                f"collect takes the rows of {', '.join(repr(name) for name in self.stream_names)}, "
                f"not of {', '.join(repr(name) for name in inputs) or 'none'}"
            )
        return [feed for stream in self.stream_names for feed in sources_of(stream, inputs[stream])]

    def _side(self, side: int, engine: Engine) -> JoinSide:
        role, window = self.roles[side], self.windows[side]
        stream = self._stream(role)
        return JoinSide(role, stream, self.event_time_of(stream), window, engine.merge_policy(window))

    def _stream(self, role: str) -> str:
        return (self.streams or {}).get(role, role)

    def event_time_of(self, stream: str) -> str | None:
        """The event-time column of a stream; None where the row number is the time."""
        return self.event_time.get(stream) if isinstance(self.event_time, Mapping) else self.event_time

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


@dataclass(frozen=True)
class StreamCheck:
    """Refuses a stream's schema that lacks what the join needs; runs at the door."""

    stream: str
    predicate: Predicate
    selection: Selection
    streams: tuple[str, ...]

    def __call__(self, schema: pa.Schema) -> None:
        reserved = [name for name in schema.names if name.startswith("#")]
        if reserved:
            raise SchemaError(f"stream '{self.stream}': column '{reserved[0]}' must not start with '#': rename it")
        for side in (LEFT, RIGHT):
            if self.streams[side] == self.stream:
                needed = [dimension.column(side) for dimension in self.predicate.dimensions]
                missing = [name for name in needed if name not in schema.names]
                missing += self.selection.missing(side, schema)
                if missing:
                    raise SchemaError(
                        f"stream '{self.stream}': column '{missing[0]}' is missing, which the join needs; "
                        f"columns: {', '.join(schema.names)}"
                    )
                for name in needed:
                    try:
                        key_type(name, schema.field(name).type)
                    except PredicateError as error:
                        raise SchemaError(f"stream '{self.stream}': {error}") from None


def _window(clause: WindowClause | None) -> Window:
    assert clause is not None
    if clause.kind == "time":
        return TimeWindow(clause.size, clause.slide)
    size, slide = clause.size, 1 if clause.slide is None else clause.slide
    assert isinstance(size, int), "the parser takes whole numbers of rows only"
    assert isinstance(slide, int), "the parser takes whole numbers of rows only"
    return CountWindow(size, slide)
