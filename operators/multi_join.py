"""Describes a join of more than two streams and runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from operators.engines.shared.configured_index import ConfiguredIndex
from operators.engines.shared.setting_checks import AUTO
from operators.explanation import Explanation
from operators.feeding import Feeding, sources_of
from operators.intake.event_time_settings import RESULTS
from operators.intake.gate import DEFAULT_STEP_ROWS
from operators.join_arguments import check_inputs, check_launch, comparable
from operators.join_run import Inputs
from operators.multi_explanation import explain_several
from operators.multi_topology import Part, multi_topology
from operators.multiway.multi_selection import MultiSelection
from operators.query.durations import Duration
from operators.query.errors import JoinError, NoWindowError
from operators.query.expressions import Expression
from operators.query.multi_condition import MultiCondition
from operators.query.select_items import Item
from operators.query.windows import Window
from operators.resolved_multi_join import ResolvedMultiJoin, resolve_several
from operators.results.result_times import EVENT_TIME
from operators.running_multi_join import RunningMultiJoin
from operators.state_estimates import warn_of_unbounded_state
from topology import LocalRuntime, Metrics, Plan, Runtime, Topology

if TYPE_CHECKING:
    from operators.sql.window import ParameterValue


@dataclass(frozen=True)
class MultiJoin:
    """An inner join of two or more streams over sliding windows.

    streams:    the roles, in the order that results are ordered by; each names a stream, or a mapping says which. Roles
                of one stream are a self-join; a row never meets itself.
    on:         the condition, as SQL text or as column expressions.
    windows:    a window for all roles, one for each in a list, or a mapping of role to window: the rows of a role that
                later rows of the others may meet.
    select:     the columns to show, such as ["a.id", "c.id"], or computed ones; None: all of all.
    event_time, out_of_order, idle_after, step_rows: as for `StreamJoin`.
    index:      the index in which the rows of a role are searched, by its name in the catalogue or configured, for all
                roles or in a mapping of role to index; "auto" chooses one for each role and order of probing.

    A result consists of one row of each role. It belongs to the latest of them, and all others must be live at that
    row, each by the window of its own role (docs/semantics.md). Results are ordered by the latest row, then by the
    other rows in the order of the roles. Like a `StreamJoin` it is a value, checked when it is made.
    """

    streams: Sequence[str] | Mapping[str, str]
    on: str | Expression
    windows: Window | Sequence[Window] | Mapping[str, Window]
    select: Sequence[str | Expression | Item] | None = field(default=None, kw_only=True)
    event_time: str | Mapping[str, str] | None = field(default=None, kw_only=True)
    out_of_order: Duration | Mapping[str, Duration] | None = field(default=None, kw_only=True)
    idle_after: Duration | None = field(default=None, kw_only=True)
    step_rows: int = field(default=DEFAULT_STEP_ROWS, kw_only=True)
    index: str | ConfiguredIndex | Mapping[str, str | ConfiguredIndex] = field(default=AUTO, kw_only=True)

    def __post_init__(self) -> None:
        self.resolved  # noqa: B018  raises what is wrong with the arguments

    @classmethod
    def from_sql(
        cls,
        sql: str,
        *,
        windows: Window | Sequence[Window] | Mapping[str, Window] | None = None,
        parameters: Mapping[str, ParameterValue] | None = None,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        event_time: str | Mapping[str, str] | None = None,
        out_of_order: Duration | Mapping[str, Duration] | None = None,
        idle_after: Duration | None = None,
        step_rows: int = DEFAULT_STEP_ROWS,
        index: str | ConfiguredIndex | Mapping[str, str | ConfiguredIndex] = AUTO,
    ) -> MultiJoin:
        """Read a query such as ``SELECT a.id, c.id FROM a, b, c WHERE a.k = b.k AND b.x < c.x WINDOW AS (ROWS 60)``.

        windows:   take the place of a WINDOW clause.
        parameters, functions: as for `StreamJoin.from_sql`.
        """
        from operators.sql.several_streams import parse_multi_query

        query = parse_multi_query(sql, parameters, functions, read_window=windows is None)
        given = windows if windows is not None else query.windows
        if given is None:
            raise NoWindowError("the join has no windows: give windows=, or a WINDOW clause: WINDOW AS (ROWS 60)")
        return cls(
            query.streams,
            query.condition,
            given,
            select=query.select,
            event_time=event_time,
            out_of_order=out_of_order,
            idle_after=idle_after,
            step_rows=step_rows,
            index=index,
        )

    @cached_property
    def resolved(self) -> ResolvedMultiJoin:
        """The join with every text parsed and every default filled in."""
        return resolve_several(self)

    @property
    def roles(self) -> tuple[str, ...]:
        """The names of the roles, in the order of the FROM clause."""
        return self.resolved.roles

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The distinct streams."""
        return self.resolved.stream_names

    @property
    def condition(self) -> MultiCondition:
        """The condition, taken apart."""
        return self.resolved.condition

    @property
    def selection(self) -> MultiSelection:
        """The select list."""
        return self.resolved.selection

    def needed_columns(self, stream: str, schema: pa.Schema) -> tuple[str, ...]:
        """Return the columns of a stream that the join reads, each once, also those that the schema lacks."""
        time = self.resolved.event_times[stream]
        needed = [] if time is None else [time]
        for role, name in enumerate(self.resolved.streams):
            if name == stream:
                needed += [*self.condition.columns(role), *self.selection.needed_columns(role, schema)]
        return tuple(dict.fromkeys(needed))

    def named_columns(self, stream: str) -> tuple[str, ...] | None:
        """Return the columns of a stream that the join reads, whatever its schema; None if it shows all."""
        roles = [role for role, name in enumerate(self.resolved.streams) if name == stream]
        if any(self.selection.shows_all(role) for role in roles):
            return None
        return self.needed_columns(stream, pa.schema([]))

    def topology(self) -> Topology:
        """Build the graph of processing elements."""
        return multi_topology(self.resolved)

    def as_part(self, event_time: str | None = "later") -> Topology:
        """Build the graph for a place in another topology: `TopologyBuilder.join` calls this."""
        resolved = self.resolved
        if resolved.idle_after is not None:
            raise JoinError(
                "idle_after is for rows from outside: in a topology set it on the inputs, Input(idle_after=...), and "
                "leave it out of the join"
            )
        if event_time is not None and event_time != "later" and event_time not in resolved.roles:
            known = ", ".join(repr(role) for role in resolved.roles)
            raise JoinError(f"event_time must be 'later', one of {known}, or None, not {event_time!r}")
        if event_time is not None and resolved.selection.shows(EVENT_TIME):
            raise JoinError(
                f"select: the event time of results is their column '{EVENT_TIME}': give the selected column another "
                f"name, or say event_time=None"
            )
        role = None if event_time in (None, "later") else resolved.roles.index(str(event_time))
        return multi_topology(resolved, Part(event_time is not None, role))

    def plan(self) -> Plan:
        """Return the plan of what would run, without running it."""
        return self.topology().plan()

    def explain(self, observed: Metrics | None = None) -> Explanation:
        """Show what runs and why; with the metrics of a run also the order of probing that it chose."""
        return explain_several(self.resolved, observed)

    def launch(
        self,
        runtime: Runtime | None = None,
        *,
        sources: Mapping[str, Sequence[str]] | None = None,
        name: str | None = None,
        detached: bool = False,
        replace: bool = False,
    ) -> RunningMultiJoin:
        """Start the join and return its handle; arguments as for `StreamJoin.launch`."""
        check_launch(runtime, sources, self.stream_names)
        for role, window in zip(self.roles, self.resolved.windows, strict=True):
            warn_of_unbounded_state(role, window, len(self.condition.links), None, stacklevel=3)
        return self._start(runtime, sources, name=name, detached=detached, replace=replace)

    def _start(
        self, runtime: Runtime | None, sources: Mapping[str, Sequence[str]] | None, **options: Any
    ) -> RunningMultiJoin:
        make_handle = partial(RunningMultiJoin, join=self)
        running = make_handle((runtime or LocalRuntime()).launch(self.topology(), make_handle=make_handle, **options))
        try:
            for stream, names in (sources or {}).items():
                running.open(stream, *names)
        except BaseException:
            running.stop()
            raise
        return running

    def collect(self, inputs: Inputs, runtime: Runtime | None = None) -> pa.Table:
        """Run the join over finite inputs and return all results, in result order; `inputs` as for `StreamJoin`."""
        return self.run(inputs, runtime).result

    def run(self, inputs: Inputs, runtime: Runtime | None = None) -> MultiRun:
        """As `collect`; return the results together with the late rows, the metrics and an explanation of the run."""
        names = self.stream_names
        check_inputs(inputs, names)
        feeds = [feed for stream in names for feed in sources_of(stream, inputs[stream])]
        schemas = {feed.stream: feed.schema for feed in feeds if feed.schema is not None}
        self.resolved.check(schemas)
        sources = {stream: [feed.source for feed in feeds if feed.stream == stream] for stream in names}
        check_launch(runtime, sources, names)
        with self._start(runtime, sources) as running:
            for stream, schema in schemas.items():
                running.pin(stream, schema)
            with Feeding(running, feeds) as feeding:
                batches = list(running.results(RESULTS))
            feeding.raise_error()
            result = pa.Table.from_batches(batches, running.result_schema())
            late = pa.Table.from_batches(running.late(), running.late_schema())
            metrics = running.metrics()
        return MultiRun(result, late, metrics, self.resolved)

    def __eq__(self, other: object) -> bool:
        """Whether the other join was given the same arguments; expressions are compared by what is written."""
        return isinstance(other, MultiJoin) and comparable(self._arguments) == comparable(other._arguments)

    def __hash__(self) -> int:
        return hash(comparable(self._arguments))

    def __reduce__(self) -> tuple[Callable[..., MultiJoin], tuple[object, ...]]:
        return _made, self._arguments  # resolved again where it is unpickled

    @property
    def _arguments(self) -> tuple[object, ...]:
        return tuple(getattr(self, each.name) for each in fields(self))


@dataclass(frozen=True, eq=False)
class MultiRun:
    """The outcome of `MultiJoin.run`: all results in order, the rows that took no part, and what each task counted."""

    result: pa.Table
    late: pa.Table
    metrics: Metrics
    _join: ResolvedMultiJoin = field(repr=False)

    def explain(self) -> Explanation:
        """Show what ran, why, and what was observed."""
        return explain_several(self._join, self.metrics)


def _made(*arguments: Any) -> MultiJoin:
    streams, on, windows, *others = arguments
    names = [each.name for each in fields(MultiJoin)][3:]
    return MultiJoin(streams, on, windows, **dict(zip(names, others, strict=True)))
