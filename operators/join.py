"""Describes a join of streams and runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from operators.engines.auto_engine import EngineChoice
from operators.engines.shared.engine import Engine
from operators.explanation import Explanation, explain
from operators.intake.gate import DEFAULT_STEP_ROWS
from operators.join_arguments import check_launch, comparable
from operators.join_part import join_part
from operators.join_run import Inputs, JoinRun, run_join
from operators.join_topology import join_topology
from operators.query.as_of import Direction
from operators.query.condition import Condition
from operators.query.durations import Duration
from operators.query.errors import JoinError
from operators.query.expressions import Expression
from operators.query.kinds import Kind
from operators.query.orderings import Ordering
from operators.query.predicate import Predicate
from operators.query.select_items import Aggregate, Item
from operators.query.windows import Window
from operators.resolved_join import ResolvedJoin, resolve
from operators.running_join import RunningJoin, start
from operators.state_estimates import warn_of_unbounded_state
from topology import Plan, Runtime, Topology

if TYPE_CHECKING:
    from operators.sql.window import ParameterValue


@dataclass(frozen=True)
class StreamJoin:
    """A join of two streams over sliding windows, or of a stream with itself.

    left, right: the two roles; each names a stream, unless `streams` says which. The same name twice is a self-join,
                 whose roles are then called name1 and name2.
    on:          the condition, as SQL text or as column expressions.
    window:      a window for both sides, or one for each: the rows of a side that later rows of the other may meet.
                 None: the condition bounds the difference of the event times, and the windows follow from it.
    kind:        "inner", "left", "right", "full", "semi", "anti", "count", "asof" or "asof inner" (docs/semantics.md).
    where:       conditions on one stream alone that its rows must satisfy to appear at all; text or expressions.
    select:      the columns to show, such as ["R.id", "S.id"], or computed ones; None: all of both.
    event_time:  the event-time column, or a mapping of stream to column; None: the number of the row in its source.
    out_of_order: how much earlier a row may be than rows before it in its source: text such as "5 min", a timedelta or
                 a number in the event time's unit, or a mapping of stream to that. Rows beyond it are late.
    idle_after:  seconds (or text, or a timedelta) of silence after which progress ignores a source until its next rows.
    using:       the engine; "auto" chooses.
    streams:     the stream of each role, where the roles have names of their own.
    ordering:    "strict" orders results by the later row, then by the earlier; "outer" only by the later row; a number
                 k orders groups of k rows; "none" emits results as they are found (see `query.orderings`).
    step_rows:   the most rows handled together; fewer bound the latency under load, more raise the throughput.
    retain:      columns that this join does not read, such as ["R.price"], and a later query on the same state may need
                 (docs/reliability.md): rows without them are refused, and `needed_columns` names them.
    aggregate:   names of results and what they are: {"n": count(), "volume": sum("S.size")} shows every row of R with
                 the number of its matches and the sum of their sizes (docs/queries.md). It takes the place of `kind`.
    direction:   of an as-of join: "backward" (default), "forward" or "nearest"; it has no window.
    tolerance:   of an as-of join: the greatest distance of the event times; as `out_of_order`. None: any.

    A join is a value: it holds these arguments, is checked when it is made and never changes. Joins with equal
    arguments are equal, and `dataclasses.replace(join, using=...)` makes another. `resolved` is what follows from the
    arguments; the observations of a run come back with it (`run`).
    """

    left: str
    right: str
    on: str | Expression
    window: Window | tuple[Window, Window] | None = None
    kind: Kind | str = Kind.INNER
    where: str | Expression | None = None
    select: Sequence[str | Expression | Item] | None = None
    event_time: str | Mapping[str, str] | None = None
    out_of_order: Duration | Mapping[str, Duration] | None = None
    idle_after: Duration | None = None
    using: Engine | Literal["auto"] = "auto"
    streams: Mapping[str, str] | None = None
    ordering: Ordering | int = "strict"
    step_rows: int = DEFAULT_STEP_ROWS
    retain: Sequence[str] = ()
    direction: Direction | None = None
    tolerance: Duration | None = None
    aggregate: Mapping[str, Aggregate] | None = None

    def __post_init__(self) -> None:
        self.resolved  # noqa: B018  raises what is wrong with the arguments

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
        retain: Sequence[str] = (),
        tolerance: Duration | None = None,
    ) -> StreamJoin:
        """Read a query such as ``SELECT R.id, S.id FROM R, S WHERE R.a < S.a WINDOW AS (SLIDE INTERVAL '10' ON '60')``.

        window:     takes the place of a WINDOW clause.
        parameters: the values of names in the WINDOW clause: ``INTERVAL 'D' ON 'W'`` with {"D": 10, "W": 60}.
        functions:  conditions of your own that the text may call by these names; each takes Arrow arrays.
        tolerance:  of an ASOF JOIN: the greatest distance of the event times.
        """
        from operators.sql.parse import parse_query

        query = parse_query(sql, parameters, functions, read_window=window is None)
        return cls(
            query.left,
            query.right,
            query.condition,
            window if window is not None else query.windows,
            kind=query.kind,
            where=query.where,
            select=query.select,
            event_time=event_time,
            out_of_order=out_of_order,
            idle_after=idle_after,
            using=using,
            streams={query.left: query.left_stream, query.right: query.right_stream},
            ordering=ordering,
            step_rows=step_rows,
            retain=retain,
            tolerance=tolerance,
        )

    @cached_property
    def resolved(self) -> ResolvedJoin:
        """The join with every text parsed, every default filled in and every choice made."""
        return resolve(self)

    @property
    def roles(self) -> tuple[str, str]:
        """The names of the two sides."""
        return self.resolved.roles

    @property
    def windows(self) -> tuple[Window, Window]:
        """The window of each side."""
        return self.resolved.windows

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The distinct streams: two, or one for a self-join."""
        return self.resolved.stream_names

    @property
    def condition(self) -> Condition:
        """The normal form of the condition."""
        return self.resolved.condition

    @property
    def predicate(self) -> Predicate:
        """The first alternative of the condition."""
        return self.resolved.condition.branches[0]

    @property
    def engines(self) -> tuple[EngineChoice, ...]:
        """The engine that searches for each alternative of the condition, and why."""
        return self.resolved.engines

    @property
    def engine(self) -> Engine:
        """The engine that runs the join, or its first alternative."""
        if self.resolved.as_of is not None:
            raise JoinError("an as-of join has one element and no engine")
        return self.resolved.engines[0].engine

    def needed_columns(self, stream: str, schema: pa.Schema) -> tuple[str, ...]:
        """Return the columns of a stream that the join reads, each once, also those that the schema lacks.

        A program that reads a large file need not read, and send, the others.
        """
        resolved = self.resolved
        time = resolved.event_times[stream]
        needed = [] if time is None else [time]
        for side, name in enumerate(resolved.streams):
            if name == stream:
                needed += [*resolved.tested_columns(side), *resolved.selection.needed_columns(side, schema)]
                needed += resolved.retained[side]
        return tuple(dict.fromkeys(needed))

    def named_columns(self, stream: str) -> tuple[str, ...] | None:
        """Return the columns of a stream that the join reads, whatever its schema; None if it shows all.

        Of a column that `select` may mean in two ways, both names are there.
        """
        selection = self.resolved.selection
        sides = [side for side, name in enumerate(self.resolved.streams) if name == stream]
        if any(selection.named_columns(side) is None for side in sides):
            return None
        others = [name for side in sides for name in selection.alternatives(side)]
        return tuple(dict.fromkeys([*self.needed_columns(stream, pa.schema([])), *others]))

    def topology(self) -> Topology:
        """Build the graph of processing elements."""
        return join_topology(self.resolved)

    def as_part(self, event_time: str | None = "later") -> Topology:
        """Build the graph for a place in another topology: `TopologyBuilder.join` calls this."""
        self._warn_of_unbounded_state()
        return join_part(self.resolved, event_time)

    def plan(self) -> Plan:
        """Return the plan of what would run, without running it."""
        return self.topology().plan()

    def explain(self, schemas: Mapping[str, pa.Schema] | None = None, observed: JoinRun | None = None) -> Explanation:
        """Show what runs and why. A running join has an `explain` of its own.

        schemas:  those of the streams, for a better estimate of the state.
        observed: a run of this join (see `run`), to show what was counted in it.
        """
        if observed is None:
            return explain(self.resolved, schemas)
        return explain(self.resolved, schemas or observed.schemas, observed.metrics)

    def launch(
        self,
        runtime: Runtime | None = None,
        *,
        sources: Mapping[str, Sequence[str]] | None = None,
        name: str | None = None,
        detached: bool = False,
        replace: bool = False,
    ) -> RunningJoin:
        """Start the join and return its handle.

        sources:  the physical sources of each stream. A source that is not named here should be announced with
                  `running.open` before others have sent rows of a later time than its first.
        name:     the name under which `attach` finds the join on a cluster.
        detached: let it outlive this program, on a cluster, until someone stops it.
        replace:  stop what runs under this name, instead of raising an error.
        """
        check_launch(runtime, sources, self.stream_names)
        self._warn_of_unbounded_state()
        return start(self, runtime, sources, name=name, detached=detached, replace=replace)

    def collect(self, inputs: Inputs, runtime: Runtime | None = None) -> pa.Table:
        """Run the join over finite inputs and return all results, in result order.

        inputs: for each stream its rows, or a mapping of source name to rows. Rows are an Arrow table or reader, a
                pandas or Polars frame, a DuckDB relation, a dict of columns, a list of dicts, anything that speaks
                Arrow's C interface, or an iterable of these. Plain rows are one source named after its stream. The
                order of the result is that of event time; see `event_time`.

        Rows that are late or have no event time take no part; a warning in the log counts them by reason.
        """
        return run_join(self, inputs, runtime, read_late=False).result

    def collect_with_late(self, inputs: Inputs, runtime: Runtime | None = None) -> tuple[pa.Table, pa.Table]:
        """As `collect`; return the results and, with the reason for each, the rows that took no part (see `late`)."""
        run = self.run(inputs, runtime)
        return run.result, run.late

    def run(self, inputs: Inputs, runtime: Runtime | None = None) -> JoinRun:
        """As `collect`; return the results together with the late rows, the metrics and an explanation of the run."""
        return run_join(self, inputs, runtime, read_late=True)

    def _warn_of_unbounded_state(self) -> None:
        resolved = self.resolved
        if resolved.as_of is not None:
            return  # it holds rows that wait, and a row or two for each key
        for side, (role, window) in enumerate(zip(resolved.roles, resolved.windows, strict=True)):
            columns = resolved.selection.named_columns(side)
            warn_of_unbounded_state(role, window, resolved.comparisons, columns, stacklevel=4)

    def __eq__(self, other: object) -> bool:
        """Whether the other join was given the same arguments; expressions are compared by what is written."""
        return isinstance(other, StreamJoin) and comparable(self._arguments) == comparable(other._arguments)

    def __hash__(self) -> int:
        return hash(comparable(self._arguments))

    def __reduce__(self) -> tuple[type[StreamJoin], tuple[object, ...]]:
        return StreamJoin, self._arguments  # resolved again where it is unpickled

    @property
    def _arguments(self) -> tuple[object, ...]:
        return tuple(getattr(self, each.name) for each in fields(self))
