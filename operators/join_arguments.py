"""Checks of a join's arguments besides its condition; each error names the argument and says what to write."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

from operators.query.errors import JoinError
from operators.query.functions import Function
from operators.query.windows import Window
from topology import Runtime


def comparable(argument: Any) -> Hashable:
    """A value that is equal for equal arguments, and can be hashed.

    `==` of two column expressions builds a condition, so expressions become tuples of their parts. 1, 1.0 and True are
    equal in Python and mean different arithmetic in a condition, so numbers stand beside their types.
    """
    if is_dataclass(argument):
        parts = (getattr(argument, each.name) for each in fields(argument) if each.compare)
        return type(argument), *map(comparable, parts)
    if isinstance(argument, Function):
        return comparable(argument.compute), argument.name
    if isinstance(argument, Mapping):
        return frozenset((name, comparable(value)) for name, value in argument.items())
    if isinstance(argument, list | tuple):
        return tuple(map(comparable, argument))
    if isinstance(argument, int | float | Decimal):
        return type(argument), argument
    return argument


def check_roles(left: object, right: object, streams: object) -> None:
    """Refuse names that cannot be those of a side or a stream."""
    for name, role in (("left", left), ("right", right)):
        if not isinstance(role, str) or not role:
            raise JoinError(f"{name} must be the name of a stream, not {role!r}")
    if streams is None:
        return
    if not isinstance(streams, Mapping) or not all(isinstance(stream, str) and stream for stream in streams.values()):
        raise JoinError(f"streams must say which stream each role is, such as {{'a': 'trips'}}, not {streams!r}")


def check_windows(given: object) -> None:
    """Refuse anything but a window or a pair of windows."""
    windows = given if isinstance(given, tuple) else (given, given)
    wrong = next((window for window in windows if not isinstance(window, Window)), None)
    if wrong is not None or len(windows) != 2:
        what = "a CountWindow, a TimeWindow or an UnboundedWindow"
        raise JoinError(f"window must be {what}, or a pair of them for left and right, not {given!r}")


def check_event_time(event_time: object, streams: tuple[str, ...]) -> None:
    """Refuse event times that are not columns of the join's streams."""
    if isinstance(event_time, Mapping):
        for stream, column in event_time.items():
            if stream not in streams:
                raise JoinError(f"event_time names '{stream}', which is not a stream of this join: {_listed(streams)}")
            if not isinstance(column, str) or not column:
                raise JoinError(f"event_time of '{stream}' must be the name of a column, not {column!r}")
        missing = next((stream for stream in streams if stream not in event_time), None)
        if missing is not None and event_time:
            raise JoinError(f"event_time has no column for '{missing}': name a column for each of {_listed(streams)}")
    elif event_time is not None and (not isinstance(event_time, str) or not event_time):
        raise JoinError(
            f"event_time must be the name of a column, or a mapping of stream to column, not {event_time!r}"
        )


def retained_columns(retain: object, roles: tuple[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns that `retain` names, by side; refuse anything but names such as "R.price"."""
    if not isinstance(retain, list | tuple):
        raise JoinError(f"retain must be a list of columns such as ['{roles[0]}.price'], not {retain!r}")
    found: dict[str, list[str]] = {role: [] for role in roles}
    for name in retain:
        role, _, column = name.partition(".") if isinstance(name, str) else ("", "", "")
        if role not in found or not column:
            raise JoinError(f"retain names {name!r}, which is no column of {_listed(roles)}: write '{roles[0]}.price'")
        found[role].append(column)
    left, right = roles
    return tuple(found[left]), tuple(found[right])


def check_launch(runtime: object, sources: object, streams: tuple[str, ...]) -> None:
    """Refuse anything but a runtime, and sources of unknown streams."""
    if runtime is not None and not isinstance(runtime, Runtime):
        raise JoinError(f"runtime must be LocalRuntime(), RayRuntime() or another Runtime, not {runtime!r}")
    if sources is not None and not isinstance(sources, Mapping):
        raise JoinError(f"sources must map each stream to the names of its sources, not {sources!r}")
    for stream, names in (sources or {}).items():
        if stream not in streams:
            raise JoinError(f"sources names '{stream}', which is not a stream of this join: {_listed(streams)}")
        if isinstance(names, str):
            raise JoinError(f"sources of '{stream}' must be a list of names such as ['{names}'], not {names!r}")


def check_inputs(inputs: object, streams: tuple[str, ...]) -> None:
    """Refuse inputs unless they are the rows of exactly these streams."""
    takes = f"collect takes the rows of {_listed(streams)}"
    if not isinstance(inputs, Mapping):
        shown = ", ".join(f"'{stream}': .." for stream in streams)
        raise JoinError(f"{takes} by name, as {{{shown}}}, not {type(inputs).__name__}")
    if set(inputs) != set(streams):
        raise JoinError(f"{takes}, not of {_listed(tuple(inputs)) or 'none'}")


def _listed(names: tuple[object, ...]) -> str:
    return ", ".join(repr(name) for name in names)
