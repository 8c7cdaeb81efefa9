"""From a user's arguments to a resolved join: every default filled in, every text parsed, every choice made, once.

`StreamJoin` holds what the user wrote. `resolve` checks it and computes what everything after needs: `join_topology`
builds the graph from it, `explanation` describes it, `RunningJoin` checks the types of arriving rows against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from indexes import check_whole_number
from operators.aggregate_arguments import aggregate_kind, read_aggregates
from operators.engines.auto_engine import EngineChoice, choose_engine
from operators.engines.shared.engine import Engine
from operators.intake.event_time_settings import bounds_of, check_stream_names, idle_seconds
from operators.join_arguments import check_event_time, check_roles, check_windows, retained_columns
from operators.protocol.sides import LEFT, RIGHT
from operators.query.as_of import AsOf, read_as_of
from operators.query.condition import Condition, by_side, columns_in, normalise, sides_of
from operators.query.durations import Duration
from operators.query.errors import JoinError, NoWindowError, PredicateError
from operators.query.expressions import And, Expression
from operators.query.interval_join import interval_windows
from operators.query.kinds import Kind, kind_of
from operators.query.orderings import Ordering, ordering_of
from operators.query.predicate import LAST_OF_EACH_KEY
from operators.query.select_items import AggregateItem
from operators.query.windows import UnboundedWindow, Window
from operators.routing.step_rows import is_per_key
from operators.values.selection import Selection
from topology import is_of_spark

if TYPE_CHECKING:
    from operators.join import StreamJoin


@dataclass(frozen=True, eq=False)
class ResolvedJoin:
    """A join with nothing left open. Pairs are by side: left, right.

    roles:       the names of the two sides; in a self-join of R they are R1 and R2 unless the user names them.
    streams:     the stream of each side; twice the same in a self-join.
    condition:   the normal form of `on`; in an inner join `where` is part of it.
    wheres:      for each side the condition that its rows must satisfy to appear at all.
    keys:        the columns that make a row's key; None where no window is per key.
    engines:     the engine that searches for each alternative of the condition, and why.
    chosen:      `engines` were chosen here, not named by the user.
    event_times: the event-time column of each stream; None where the number of the row is its time.
    bounds:      how far a stream may be out of order, for those that may.
    idle_after:  seconds of silence after which a source is idle; None: never.
    retained:    columns of each side that rows have although this join does not read them.
    as_of:       how an as-of join chooses; None for other kinds. It has neither windows nor engines.
    """

    roles: tuple[str, str]
    streams: tuple[str, str]
    kind: Kind
    condition: Condition
    wheres: tuple[Expression | None, Expression | None]
    windows: tuple[Window, Window]
    keys: tuple[tuple[str, ...], tuple[str, ...]] | None
    selection: Selection
    engines: tuple[EngineChoice, ...]
    chosen: bool
    event_times: Mapping[str, str | None]
    bounds: Mapping[str, Duration]
    idle_after: float | None
    ordering: Ordering
    step_rows: int
    as_of: AsOf | None = None
    retained: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The distinct streams: two, or one in a self-join."""
        return tuple(dict.fromkeys(self.streams))

    def tested_columns(self, side: int) -> tuple[str, ...]:
        """The columns of a side that the condition and `where` mention."""
        where = self.wheres[side]
        named = [] if where is None else [column.name for column in columns_in(where)]
        return tuple(dict.fromkeys([*self.condition.columns(side), *named]))

    @property
    def comparisons(self) -> int:
        """The comparisons that are searched by keys, over all alternatives."""
        return sum(len(branch.dimensions) for branch in self.condition.branches)


def resolve(join: StreamJoin) -> ResolvedJoin:
    """Check the arguments of a join and compute what follows from them; raises a `JoinError` or a `PredicateError`."""
    ordering = ordering_of(join.ordering)
    check_whole_number("", "step_rows", join.step_rows, error=JoinError)
    if not isinstance(join.using, Engine) and join.using != "auto":
        raise JoinError(f"using must be an engine such as SPOJoin(), or 'auto', not {join.using!r}")
    check_roles(join.left, join.right, join.streams)
    roles, streams = _roles(join.left, join.right), _streams(join)
    names = tuple(dict.fromkeys(streams))
    check_event_time(join.event_time, names)
    kind = kind_of(join.kind)
    aggregates, side = read_aggregates(join.aggregate, join.select, roles)
    if aggregates or any(isinstance(each, AggregateItem) for each in join.select or ()):
        kind = aggregate_kind(kind, closing=join.window is None)
    on = _expression("on", join.on, roles, join)
    where = None if join.where is None else _expression("where", join.where, roles, join)
    event_times = {name: _event_time_of(join, name) for name in names}
    as_of = None
    if kind.is_as_of:
        as_of, on = _as_of(join, on, where, roles, streams, event_times)
    elif join.direction is not None or join.tolerance is not None:
        raise JoinError(f"direction and tolerance belong to kind='asof', not to kind='{kind}'")
    if where is not None and kind is Kind.INNER:
        on, where = And(on, where), None
    wheres = (None, None) if where is None else by_side(where, roles)
    condition = normalise(on, *roles).among(wheres)
    windows: tuple[Window, Window] = (UnboundedWindow(), UnboundedWindow())
    if as_of is None:
        windows = _windows(join, on, roles, (event_times[streams[LEFT]], event_times[streams[RIGHT]]))
    keys = None
    if any(is_per_key(window) for window in windows):
        keys = condition.equal_columns(LEFT), condition.equal_columns(RIGHT)
        condition = _per_key(condition, roles)
    selection = Selection.of(roles, join.select, kind, aggregates, side)
    check_stream_names(names)
    return ResolvedJoin(
        roles,
        streams,
        kind,
        condition,
        wheres,
        windows,
        keys,
        selection,
        () if as_of is not None else _engines(join, condition, windows),
        join.using == "auto",
        event_times,
        bounds_of(join.out_of_order, event_times),
        idle_seconds(join.idle_after),
        ordering,
        join.step_rows,
        as_of,
        retained_columns(join.retain, roles),
    )


def _roles(left: str, right: str) -> tuple[str, str]:
    return (left, right) if left != right else (f"{left}1", f"{left}2")


def _streams(join: StreamJoin) -> tuple[str, str]:
    given = join.streams or {}
    for role in given:
        if role not in (join.left, join.right):
            roles = (join.left, join.right)
            raise JoinError(f"streams names '{role}', which is not a role of this join; its roles: {roles}")
    return given.get(join.left, join.left), given.get(join.right, join.right)


def _event_time_of(join: StreamJoin, stream: str) -> str | None:
    return join.event_time.get(stream) if isinstance(join.event_time, Mapping) else join.event_time


def _expression(name: str, given: object, roles: tuple[str, str], join: StreamJoin) -> Expression:
    if isinstance(given, str):
        from operators.sql.parse import parse_condition  # sqlglot takes a while, and expressions do without

        return parse_condition(given, *roles, stream=join.left if join.left == join.right else None)
    if not isinstance(given, Expression):
        left, right = roles
        if is_of_spark(given):
            raise PredicateError(
                f'{name} is a Column of Spark, which only Spark can read: write {name}="{left}.a < {right}.a", or '
                f"columns of this join, il.stream('{left}').a < il.stream('{right}').a"
            )
        raise PredicateError(f"{name} must be SQL text or a column expression, not {given!r}")
    return given


def _windows(
    join: StreamJoin, on: Expression, roles: tuple[str, str], event_times: tuple[str | None, str | None]
) -> tuple[Window, Window]:
    """The window of each side: as given, or those that an interval join implies."""
    if join.window is not None:
        check_windows(join.window)
        return join.window if isinstance(join.window, tuple) else (join.window, join.window)
    left, right = event_times
    windows = None
    if left is not None and right is not None:
        windows = interval_windows(on, (roles[LEFT], left), (roles[RIGHT], right))
    if windows is None:
        raise NoWindowError(
            "the join has no window: give window=, a WINDOW clause, or, with event_time=, a condition that bounds "
            f"the difference of the event times, such as {roles[LEFT]}.ts BETWEEN {roles[RIGHT]}.ts - INTERVAL '5' "
            f"MINUTE AND {roles[RIGHT]}.ts"
        )
    return windows


def _as_of(
    join: StreamJoin,
    on: Expression,
    where: Expression | None,
    roles: tuple[str, str],
    streams: tuple[str, str],
    event_times: Mapping[str, str | None],
) -> tuple[AsOf, Expression]:
    """How an as-of join chooses, and the rest of its condition."""
    left, right = (event_times[stream] for stream in streams)
    if left is None or right is None:
        raise JoinError("an as-of join needs event_time=: it chooses the row that is nearest in event time")
    if streams[LEFT] == streams[RIGHT]:
        raise JoinError(f"an as-of join takes two streams, not '{streams[LEFT]}' twice: send its rows to two streams")
    for name, given, usual in (("window", join.window, None), ("using", join.using, "auto")):
        if given != usual:
            remedy = "tolerance= bounds how far it looks" if name == "window" else "it has one way to run"
            raise JoinError(f"an as-of join has no {name}: leave it out; {remedy}")
    if where is not None and RIGHT in sides_of(where, roles):
        raise JoinError(
            f"where of an as-of join may use columns of {roles[LEFT]} only: a condition on {roles[RIGHT]} in `on` "
            f"decides which rows can be chosen; to drop results, filter them"
        )
    return read_as_of(on, (roles[LEFT], left), (roles[RIGHT], right), join.direction, join.tolerance)


def _per_key(condition: Condition, roles: tuple[str, str]) -> Condition:
    """Add a dimension to the condition: a row must be among the last of its key."""
    if not condition.equal_columns(LEFT):
        left, right = roles
        raise JoinError(
            f"a window per key needs an equality that defines the key: add one to the condition, such as "
            f"{left}.key = {right}.key, outside of any OR"
        )
    (branch,) = condition.branches
    return replace(condition, branches=(replace(branch, dimensions=(*branch.dimensions, LAST_OF_EACH_KEY)),))


def _engines(join: StreamJoin, condition: Condition, windows: tuple[Window, Window]) -> tuple[EngineChoice, ...]:
    if isinstance(join.using, Engine):
        return tuple(EngineChoice(join.using, "asked for") for _ in condition.branches)
    return tuple(choose_engine(branch, windows) for branch in condition.branches)
