"""The front door: describe a join of streams, run it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from operators.engines.auto_engine import EngineChoice, choose_engine
from operators.engines.shared.engine import Engine
from operators.explanation import Explanation, explain
from operators.feeding import Feed, Feeding, sources_of
from operators.intake.event_time_settings import bounds_of, check_stream_names, idle_seconds
from operators.intake.gate import DEFAULT_STEP_ROWS
from operators.join_arguments import check_event_time, check_inputs, check_launch, check_roles, check_windows
from operators.join_topology import join_topology
from operators.protocol.sides import LEFT, RIGHT
from operators.query.condition import Condition, by_side, normalise
from operators.query.durations import Duration
from operators.query.errors import JoinError, PredicateError
from operators.query.expressions import And, Expression
from operators.query.interval_join import interval_windows
from operators.query.kinds import Kind, kind_of
from operators.query.orderings import Ordering, ordering_of
from operators.query.predicate import LAST_OF_EACH_KEY, Predicate
from operators.query.windows import Window
from operators.routing.step_rows import is_per_key
from operators.running_join import RunningJoin, conformed
from operators.sql.parse import parse_condition, parse_query
from operators.sql.window import ParameterValue
from operators.state_estimates import warn_of_unbounded_state
from operators.values.selection import Selection
from topology import LocalRuntime, Metrics, Plan, Runtime, Topology

Rows: TypeAlias = pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch]
"""The rows of one physical source."""


@dataclass(frozen=True)
class StreamJoin:
    """A join of two streams over sliding windows, or of a stream with itself.

    left, right: the two roles; each names a stream, unless `streams` says which. The same name twice is a self-join,
                 whose roles are then called name1 and name2.
    on:          the condition, as SQL text or as column expressions.
    window:      a window for both sides, or a pair: the rows of a side that later rows of the other may meet. None: the
                 condition bounds the difference of the event times, and the windows follow.
    kind:        "inner", "left", "right", "full", "semi", "anti" or "count" (docs/semantics.md).
    where:       conditions on one stream alone that its rows must satisfy to appear at all; text or expressions.
    select:      the columns to show, such as ["R.id", "S.id"], or computed ones; None: all of both.
    event_time:  the event-time column, or a mapping of stream to column; None: the number of the row in its source.
    out_of_order: how much earlier than one before it in its source a row may be: text such as "5 min", a timedelta or a
                 number in the event time's unit, or a mapping of stream to that. Rows beyond it are late.
    idle_after:  seconds (or text, or a timedelta) of silence after which a source does not hold the others back.
    using:       the engine; "auto" chooses.
    streams:     the stream of each role, where the roles have names of their own.
    ordering:    "strict" orders results by the later row, then by the earlier; "outer" only by the later row; a number
                 k orders groups of k rows; "none" sends results as they are found (see `query.orderings`).
    step_rows:   the most rows handled together; fewer bound the latency under load, more raise the throughput.
    """

    left: str
    right: str
    on: str | Expression
    window: Window | tuple[Window, Window] | None = None
    kind: Kind | str = Kind.INNER
    where: str | Expression | None = None
    select: Sequence[str | Expression] | None = None
    event_time: str | Mapping[str, str] | None = None
    out_of_order: Duration | Mapping[str, Duration] | None = None
    idle_after: Duration | None = None
    using: Engine | Literal["auto"] = "auto"
    streams: Mapping[str, str] | None = None
    ordering: Ordering | int = "strict"
    step_rows: int = DEFAULT_STEP_ROWS
    selection: Selection | None = field(default=None, repr=False)
    condition: Condition = field(init=False, repr=False)
    wheres: tuple[Expression | None, Expression | None] = field(init=False, repr=False, compare=False)
    last_metrics: Metrics | None = field(init=False, repr=False, compare=False, default=None)
    last_schemas: Mapping[str, pa.Schema] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        self._set("ordering", ordering_of(self.ordering))
        if isinstance(self.step_rows, bool) or not isinstance(self.step_rows, int) or self.step_rows < 1:
            raise JoinError(f"step_rows must be a whole number of 1 or more, not {self.step_rows!r}")
        if not isinstance(self.using, Engine) and self.using != "auto":
            raise JoinError(f"using must be an engine such as SPOJoin(), or 'auto', not {self.using!r}")
        check_roles(self.left, self.right, self.streams)
        if self.left == self.right:
            name, stream = self.left, self.stream_of(self.left)
            self._set("streams", {f"{name}1": stream, f"{name}2": stream})
            self._set("left", f"{name}1")
            self._set("right", f"{name}2")
            for argument, given in (("on", self.on), ("where", self.where)):
                if isinstance(given, str):
                    self._set(argument, parse_condition(given, *self.roles, stream=name))
        for role in self.streams or {}:
            if role not in self.roles:
                raise JoinError(f"streams names '{role}', which is no role of this join; its roles: {self.roles}")
        check_event_time(self.event_time, self.stream_names)
        self._set("kind", kind_of(self.kind))
        condition = self._expression("on", self.on)
        where = None if self.where is None else self._expression("where", self.where)
        if where is not None and self.kind is Kind.INNER:
            condition, where = And(condition, where), None
        self._set("wheres", (None, None) if where is None else by_side(where, self.roles))
        self._set("condition", normalise(condition, *self.roles).among(self.wheres))
        if self.window is None:
            self._set("window", self._interval_windows(condition))
        check_windows(self.window)
        if any(is_per_key(window) for window in self.windows):
            self._set("condition", self._per_key(self.condition))
        if self.selection is None:
            self._set("selection", Selection.of(self.roles, self.select, kind_of(self.kind)))
        check_stream_names(self.stream_names)
        bounds_of(self.out_of_order, self.event_times)
        idle_seconds(self.idle_after)

    @classmethod
    def from_sql(
        cls,
        sql: str,
        *,
        window: Window | tuple[Window, Window] | None = None,
        parameters: Mapping[str, ParameterValue] | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        event_time: str | Mapping[str, str] | None = None,
        out_of_order: Duration | Mapping[str, Duration] | None = None,
        idle_after: Duration | None = None,
        using: Engine | Literal["auto"] = "auto",
        ordering: Ordering | int = "strict",
        step_rows: int = DEFAULT_STEP_ROWS,
    ) -> StreamJoin:
        """Read a query such as ``SELECT R.id, S.id FROM R, S WHERE R.a < S.a WINDOW AS (SLIDE INTERVAL '10' ON '60')``.

        window:     takes the place of a WINDOW clause.
        parameters: the values of names in the WINDOW clause: ``INTERVAL 'D' ON 'W'`` with {"D": 10, "W": 60}.
        functions:  conditions of your own that the text may call by these names; each takes Arrow arrays.
        """
        query = parse_query(sql, parameters, functions, read_window=window is None)
        return cls(
            query.left,
            query.right,
            query.condition,
            window if window is not None else query.windows,
            kind=query.kind,
            where=query.where,
            event_time=event_time,
            out_of_order=out_of_order,
            idle_after=idle_after,
            using=using,
            streams={query.left: query.left_stream, query.right: query.right_stream},
            ordering=ordering,
            step_rows=step_rows,
            selection=Selection((query.left, query.right), query.select, query.kind),
        )

    @property
    def roles(self) -> tuple[str, str]:
        """The names of the two sides."""
        return (self.left, self.right)

    @property
    def windows(self) -> tuple[Window, Window]:
        """The window of each side."""
        assert self.window is not None, "set when the join is made"
        return self.window if isinstance(self.window, tuple) else (self.window, self.window)

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The distinct streams: two, or one for a self-join."""
        return tuple(dict.fromkeys(self.stream_of(role) for role in self.roles))

    @property
    def predicate(self) -> Predicate:
        """The first alternative of the condition."""
        return self.condition.branches[0]

    @property
    def keys(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """The columns of each side that make its key; None where no window is per key."""
        if not any(is_per_key(window) for window in self.windows):
            return None
        return self.condition.equal_columns(LEFT), self.condition.equal_columns(RIGHT)

    @property
    def engines(self) -> list[EngineChoice]:
        """The engine that searches for each alternative of the condition, and why."""
        if self.using == "auto":
            return [choose_engine(branch, self.windows) for branch in self.condition.branches]
        return [EngineChoice(self.using, "asked for") for _ in self.condition.branches]

    @property
    def engine(self) -> Engine:
        """The engine that runs the join, or its first alternative."""
        return self.engines[0].engine

    def topology(self) -> Topology:
        """The graph of processing elements."""
        return join_topology(self)

    def plan(self) -> Plan:
        """What would run, without running it."""
        return self.topology().plan()

    def explain(self, schemas: Mapping[str, pa.Schema] | None = None) -> Explanation:
        """What runs and why; after `collect` also what was observed. A running join has an `explain` of its own.

        schemas: those of the streams, for a better estimate of the state.
        """
        return explain(self, schemas or self.last_schemas, self.last_metrics)

    def launch(
        self, runtime: Runtime | None = None, *, sources: Mapping[str, Sequence[str]] | None = None
    ) -> RunningJoin:
        """Start the join and return its handle.

        sources: the physical sources of each stream. A source that is not named here should be announced with
                 `running.open` before others have sent rows of a later time than its first.
        """
        check_launch(runtime, sources, self.stream_names)
        self._warn_of_unbounded_state()
        return self._launch(runtime, sources)

    def _launch(self, runtime: Runtime | None, sources: Mapping[str, Sequence[str]] | None) -> RunningJoin:
        assert self.selection is not None
        running = RunningJoin((runtime or LocalRuntime()).launch(self.topology()), self)
        for stream, names in (sources or {}).items():
            running.open(stream, *names)
        return running

    def collect(self, inputs: Mapping[str, Rows | Mapping[str, Rows]], runtime: Runtime | None = None) -> pa.Table:
        """Run the join over finite inputs and return all results, in result order.

        inputs: for each stream its rows, or a mapping of source name to rows. A plain table is one source named after
                its stream. The order of the result is that of event time; see `event_time`.

        Rows that are late or have no event time take no part; a warning in the log counts them by reason.
        """
        return self._collect(inputs, runtime, with_late=False)[0]

    def collect_with_late(
        self, inputs: Mapping[str, Rows | Mapping[str, Rows]], runtime: Runtime | None = None
    ) -> tuple[pa.Table, pa.Table]:
        """As `collect`; return the results and, with the reason for each, the rows that took no part (see `late`)."""
        return self._collect(inputs, runtime, with_late=True)

    def _collect(
        self, inputs: Mapping[str, Rows | Mapping[str, Rows]], runtime: Runtime | None, with_late: bool
    ) -> tuple[pa.Table, pa.Table]:
        feeds = self._feeds(inputs)
        sources = {stream: [feed.source for feed in feeds if feed.stream == stream] for stream in self.stream_names}
        check_launch(runtime, sources, self.stream_names)
        with self._launch(runtime, sources) as running:  # finite inputs: no window is a reason to warn
            for feed in feeds:
                if feed.schema is not None:
                    running.pin(feed.stream, feed.schema)
            with Feeding(running, feeds) as feeding:
                batches = list(running.results())
            feeding.raise_error()
            schema = running.result_schema()
            late = pa.Table.from_batches(running.late() if with_late else (), running.late_schema())
            if not with_late:
                running.warn_of_late_rows()
            self._set("last_metrics", running.metrics())
            self._set("last_schemas", running.schemas)
        return pa.Table.from_batches([conformed(batch, schema) for batch in batches], schema), late

    def _warn_of_unbounded_state(self) -> None:
        assert self.selection is not None
        comparisons = sum(len(branch.dimensions) for branch in self.condition.branches)
        for side, (role, window) in enumerate(zip(self.roles, self.windows, strict=True)):
            columns = self.selection.named_columns(side)
            warn_of_unbounded_state(role, window, comparisons, columns, stacklevel=4)

    def _feeds(self, inputs: Mapping[str, Rows | Mapping[str, Rows]]) -> list[Feed]:
        check_inputs(inputs, self.stream_names)
        return [feed for stream in self.stream_names for feed in sources_of(stream, inputs[stream])]

    def stream_of(self, role: str) -> str:
        """The stream of a role."""
        return (self.streams or {}).get(role, role)

    @property
    def event_times(self) -> dict[str, str | None]:
        """The event-time column of each stream; None where the row number is the time."""
        return {stream: self.event_time_of(stream) for stream in self.stream_names}

    def event_time_of(self, stream: str) -> str | None:
        """The event-time column of a stream; None where the row number is the time."""
        return self.event_time.get(stream) if isinstance(self.event_time, Mapping) else self.event_time

    def _per_key(self, condition: Condition) -> Condition:
        """The condition with one dimension more: that a row is among the last of its key."""
        if not condition.equal_columns(LEFT):
            left, right = self.roles
            raise JoinError(
                f"a window per key needs an equality that says what the key is: add one to the condition, such as "
                f"{left}.key = {right}.key, outside of any OR"
            )
        (branch,) = condition.branches
        return replace(condition, branches=(replace(branch, dimensions=(*branch.dimensions, LAST_OF_EACH_KEY)),))

    def _interval_windows(self, condition: Expression) -> tuple[Window, Window]:
        left, right = ((role, self.event_time_of(self.stream_of(role))) for role in self.roles)
        windows = None
        if left[1] is not None and right[1] is not None:
            windows = interval_windows(condition, (left[0], left[1]), (right[0], right[1]))
        if windows is None:
            raise JoinError(
                "the join has no window: give window=, a WINDOW clause, or, with event_time=, a condition that bounds "
                f"the difference of the event times, such as {left[0]}.ts BETWEEN {right[0]}.ts - INTERVAL '5' MINUTE "
                f"AND {right[0]}.ts"
            )
        return windows

    def _expression(self, name: str, given: str | Expression) -> Expression:
        condition = parse_condition(given, *self.roles) if isinstance(given, str) else given
        if not isinstance(condition, Expression):
            raise PredicateError(f"{name} must be SQL text or a column expression, not {condition!r}")
        return condition

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
