"""From the arguments of a join of several streams to a resolved join: every text parsed, every default filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indexes import check_whole_number
from operators.bounds.intervals import bind
from operators.engines.shared.configured_index import ConfiguredIndex
from operators.engines.shared.setting_checks import AUTO, check_index
from operators.intake.event_time_settings import bounds_of, check_stream_names, idle_seconds
from operators.intake.time_unit import finest, in_units
from operators.join_arguments import check_event_time
from operators.multiway.multi_selection import MultiSelection
from operators.query.durations import Duration
from operators.query.errors import JoinError, PredicateError, WindowError
from operators.query.expressions import Column
from operators.query.multi_condition import MultiCondition, column_of, take_apart
from operators.query.windows import CountWindow, Window
from operators.routing.liveness import liveness
from operators.stream_types import can_be_merged
from operators.values.evaluation import type_of
from topology import SchemaError
from topology import check_event_time as check_time_column

if TYPE_CHECKING:
    from operators.multi_join import MultiJoin


@dataclass(frozen=True, eq=False)
class ResolvedMultiJoin:
    """A join of several streams with nothing left open. Tuples are by role, in the order of the FROM clause.

    event_times: the event-time column of each stream; None where the number of the row is its time.
    bounds:      how far a stream may be out of order, for those that may.
    indexes:     the index of each role, or "auto".
    """

    roles: tuple[str, ...]
    streams: tuple[str, ...]
    condition: MultiCondition
    windows: tuple[Window, ...]
    selection: MultiSelection
    event_times: Mapping[str, str | None]
    bounds: Mapping[str, Duration]
    idle_after: float | None
    step_rows: int
    indexes: tuple[str | ConfiguredIndex, ...]

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The distinct streams."""
        return tuple(dict.fromkeys(self.streams))

    def check(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Refuse types that do not fit, as soon as the schemas of all streams are known."""
        if any(stream not in schemas for stream in self.streams):
            return
        for stream in self.stream_names:
            RoleCheck(self, stream)(schemas[stream])
        times = {stream: self._time_type(stream, schemas[stream]) for stream in self.stream_names}
        first = self.streams[0]
        for role, stream in zip(self.roles, self.streams, strict=True):
            if not can_be_merged(times[first], times[stream]):
                shown = ", ".join(f"'{name}' has {kind or 'row numbers'}" for name, kind in times.items())
                raise SchemaError(f"event times of different types cannot be merged: {shown}: cast them to one type")
            try:
                factor = in_units(times[stream], finest(times.values()))
                liveness(self.windows[self.roles.index(role)], times[stream], factor=factor)
            except WindowError as error:
                raise SchemaError(f"stream '{stream}': {error}") from error
        try:
            self._check_condition(schemas)
            self.result_schema(schemas)
        except PredicateError as error:
            raise SchemaError(f"streams {', '.join(repr(name) for name in self.stream_names)}: {error}") from error

    def result_schema(self, schemas: Mapping[str, pa.Schema]) -> pa.Schema:
        """The columns of the results; those of streams without a known schema have type null, or are missing."""
        known = {role: schemas[stream] for role, stream in enumerate(self.streams) if stream in schemas}
        if len(known) == len(self.roles):
            return self.selection.schema(known)
        return pa.schema([pa.field(name, pa.null()) for name, _ in self.selection.columns(known)])

    def _time_type(self, stream: str, schema: pa.Schema) -> pa.DataType | None:
        column = self.event_times[stream]
        if column is None:
            return None
        check_time_column(stream, schema, column)
        return schema.field(column).type

    def _check_condition(self, schemas: Mapping[str, pa.Schema]) -> None:
        def kind(column: Column) -> pa.DataType:
            role, name = column_of(column, self.roles)
            return schemas[self.streams[role]].field(name).type

        found = type_of(self.condition.written, kind)
        if not (pa.types.is_boolean(found) or pa.types.is_null(found)):
            raise PredicateError(f"`{self.condition.written!r}` is {found}, not a condition: compare it with something")
        for link in self.condition.links:
            left, right = (
                schemas[self.streams[role]].field(link.dimension.column(side)).type
                for side, role in enumerate(link.roles)
            )
            bind(link.dimension, left, right)


@dataclass(frozen=True)
class RoleCheck:
    """Refuses a stream that lacks columns the join needs; runs where rows enter the topology."""

    join: ResolvedMultiJoin
    stream: str

    def __call__(self, schema: pa.Schema) -> None:
        reserved = [name for name in schema.names if name.startswith("#")]
        if reserved:
            raise SchemaError(f"stream '{self.stream}': column '{reserved[0]}' must not start with '#': rename it")
        for role, stream in enumerate(self.join.streams):
            if stream == self.stream:
                needed = [*self.join.condition.columns(role), *self.join.selection.needed_columns(role, schema)]
                missing = [name for name in needed if name not in schema.names]
                if missing:
                    raise SchemaError(
                        f"stream '{self.stream}': column '{missing[0]}', which the join needs, is missing; "
                        f"columns: {', '.join(schema.names)}"
                    )


def resolve_several(join: MultiJoin) -> ResolvedMultiJoin:
    """Check the arguments of a join and compute what follows from them; raises a `JoinError` or `PredicateError`."""
    check_whole_number("", "step_rows", join.step_rows, error=JoinError)
    roles, streams = _streams(join.streams)
    names = tuple(dict.fromkeys(streams))
    check_event_time(join.event_time, names)
    event_times = {
        name: join.event_time.get(name) if isinstance(join.event_time, Mapping) else join.event_time for name in names
    }
    on = join.on
    if isinstance(on, str):
        from operators.sql.several_streams import parse_multi_condition  # sqlglot takes a while

        on = parse_multi_condition(on, roles)
    check_stream_names(names)
    return ResolvedMultiJoin(
        roles,
        streams,
        take_apart(on, roles),
        _windows(join.windows, roles),
        MultiSelection.of(roles, join.select),
        event_times,
        bounds_of(join.out_of_order, event_times),
        idle_seconds(join.idle_after),
        join.step_rows,
        _indexes(join.index, roles),
    )


def _streams(given: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The roles, and the stream of each."""
    listed = isinstance(given, Mapping) or (isinstance(given, Sequence) and not isinstance(given, str))
    names = list(given) if listed else []  # type: ignore[call-overload]
    streams = [given[name] for name in names] if isinstance(given, Mapping) else names
    if len(names) < 2 or not all(isinstance(name, str) and name for name in [*names, *streams]):
        raise JoinError(
            f"streams must name two streams or more, such as ['a', 'b', 'c'], or say which stream each role is, such "
            f"as {{'a': 'trips', 'b': 'trips', 'c': 'stops'}}, not {given!r}"
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise JoinError(
            f"streams names '{twice}' twice: give the roles names of their own, such as {{'{twice}1': '{twice}', "
            f"'{twice}2': '{twice}'}}"
        )
    return tuple(names), tuple(streams)


def _windows(given: object, roles: tuple[str, ...]) -> tuple[Window, ...]:
    """The window of each role."""
    form = f"a window for all, a list of {len(roles)}, or a mapping of each of {', '.join(map(repr, roles))} to one"
    if isinstance(given, Window):
        found: list[object] = [given] * len(roles)
    elif isinstance(given, Mapping):
        unknown = next((role for role in given if role not in roles), None)
        missing = next((role for role in roles if role not in given), None)
        if unknown is not None or missing is not None:
            wrong = f"there is no role {unknown!r}" if unknown is not None else f"'{missing}' has none"
            raise JoinError(f"windows must be {form}: {wrong}")
        found = [given[role] for role in roles]
    else:
        found = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else []
    checked = [window for window in found if isinstance(window, Window)]
    if len(checked) != len(roles) or len(found) != len(roles):
        raise JoinError(f"windows must be {form}, not {given!r}")
    if any(isinstance(window, CountWindow) and window.per_key for window in checked):
        raise JoinError("a window per key belongs to a join of two streams: use StreamJoin, or a window of all keys")
    return tuple(checked)


def _indexes(given: object, roles: tuple[str, ...]) -> tuple[str | ConfiguredIndex, ...]:
    """The index of each role."""
    of: dict[str, Any] = dict(given) if isinstance(given, Mapping) else dict.fromkeys(roles, given)
    unknown = next((role for role in of if role not in roles), None)
    if unknown is not None:
        raise JoinError(
            f"MultiJoin: this join has no role {unknown!r}: give indexes to "
            f"{', '.join(map(repr, roles))}, or one to all"
        )
    found = tuple(of.get(role, AUTO) for role in roles)
    for index in found:
        check_index("MultiJoin", index)
    return found
