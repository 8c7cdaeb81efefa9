"""The front door: describe a join of streams, run it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from operators.auto_engine import EngineChoice, choose_engine
from operators.condition import Condition, by_side, normalise
from operators.engine import Engine
from operators.errors import JoinError, PredicateError
from operators.expressions import And, Expression
from operators.feeding import Feed, Feeding, sources_of
from operators.gate import DEFAULT_STEP_ROWS
from operators.interval_join import interval_windows
from operators.join_topology import join_topology
from operators.kinds import Kind, kind_of
from operators.orderings import Ordering, ordering_of
from operators.predicate import LAST_OF_EACH_KEY, LEFT, RIGHT, Predicate
from operators.running_join import RunningJoin, conformed
from operators.selection import Selection
from operators.sql import parse_condition, parse_query
from operators.sql_window import ParameterValue
from operators.step_rows import is_per_key
from operators.windows import Window
from topology import LocalRuntime, Runtime, Topology
from topology.plan import Plan

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
    using:       the engine; "auto" chooses.
    streams:     the stream of each role, where the roles have names of their own.
    ordering:    "strict" orders results by the later row, then by the earlier; "outer" only by the later row; a number
                 k orders groups of k rows; "none" sends results as they are found (see `operators.orderings`).
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
    using: Engine | Literal["auto"] = "auto"
    streams: Mapping[str, str] | None = None
    ordering: Ordering | int = "strict"
    step_rows: int = DEFAULT_STEP_ROWS
    selection: Selection | None = field(default=None, repr=False)
    condition: Condition = field(init=False, repr=False)
    wheres: tuple[Expression | None, Expression | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._set("ordering", ordering_of(self.ordering))
        if isinstance(self.step_rows, bool) or not isinstance(self.step_rows, int) or self.step_rows < 1:
            raise JoinError(f"step_rows must be a whole number of 1 or more, not {self.step_rows!r}")
        if not isinstance(self.using, Engine) and self.using != "auto":
            raise JoinError(f"using must be an engine such as SPOJoin(), or 'auto', not {self.using!r}")
        if self.left == self.right:
            stream = self.stream_of(self.left)
            self._set("streams", {f"{self.left}1": stream, f"{self.left}2": stream})
            if isinstance(self.on, str):
                self._set("on", parse_query(f"SELECT * FROM {self.left} WHERE {self.on}").condition)
            self._set("right", f"{self.left}2")
            self._set("left", f"{self.left}1")
        for role in self.streams or {}:
            if role not in self.roles:
                raise JoinError(f"streams names '{role}', which is no role of this join; its roles: {self.roles}")
        self._set("kind", kind_of(self.kind))
        condition = self._expression("on", self.on)
        where = None if self.where is None else self._expression("where", self.where)
        if where is not None and self.kind is Kind.INNER:
            condition, where = And(condition, where), None
        self._set("wheres", (None, None) if where is None else by_side(where, self.roles))
        self._set("condition", normalise(condition, *self.roles).among(self.wheres))
        if self.window is None:
            self._set("window", self._interval_windows(condition))
        for window in self.windows:
            if not isinstance(window, Window):
                raise JoinError(
                    f"window must be a CountWindow, a TimeWindow or an UnboundedWindow, or a pair, not {window!r}"
                )
        if any(is_per_key(window) for window in self.windows):
            self._set("condition", self._per_key(self.condition))
        if self.selection is None:
            self._set("selection", Selection.of(self.roles, self.select, kind_of(self.kind)))
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
        functions: Mapping[str, Callable[..., Any]] | None = None,
        event_time: str | Mapping[str, str] | None = None,
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
            return [choose_engine(branch) for branch in self.condition.branches]
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
        return pa.Table.from_batches([conformed(batch, schema) for batch in batches], schema)

    def _feeds(self, inputs: Mapping[str, Rows | Mapping[str, Rows]]) -> list[Feed]:
        missing = [stream for stream in self.stream_names if stream not in inputs]
        unknown = [stream for stream in inputs if stream not in self.stream_names]
        if missing or unknown:
            raise JoinError(
                f"collect takes the rows of {', '.join(repr(name) for name in self.stream_names)}, "
                f"not of {', '.join(repr(name) for name in inputs) or 'none'}"
            )
        return [feed for stream in self.stream_names for feed in sources_of(stream, inputs[stream])]

    def stream_of(self, role: str) -> str:
        """The stream of a role."""
        return (self.streams or {}).get(role, role)

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
