"""A join as a part of a topology: its streams are those of other components, its results a stream with event time."""

from __future__ import annotations

from operators.join_topology import Within, join_topology
from operators.protocol.sides import LEFT, RIGHT
from operators.query.errors import JoinError
from operators.query.kinds import Kind
from operators.resolved_join import ResolvedJoin
from operators.results.result_times import EVENT_TIME
from operators.stream_types import TypesCheck
from topology import Topology

LATER = "later"
"""The event time of the row that a result belongs to."""


def join_part(join: ResolvedJoin, event_time: str | None) -> Topology:
    """Build the graph of a join for `TopologyBuilder.join`; raises a `JoinError` for what has no meaning there."""
    if join.idle_after is not None:
        raise JoinError(
            "idle_after is for rows from outside: in a topology set it on the inputs, Input(idle_after=...), and leave "
            "it out of the join"
        )
    side = _side(join, event_time)
    if event_time is not None and join.selection.shows(EVENT_TIME):
        raise JoinError(
            f"select: the event time of results is their column '{EVENT_TIME}': give the selected column another name, "
            f"or say event_time=None"
        )
    return join_topology(join, Within(TypesCheck(join), event_time is not None, side))


def _has_row(join: ResolvedJoin, side: int) -> bool:
    """Whether every result has a row of a side."""
    if join.kind.is_aggregate:
        return side == join.selection.side
    alone = join.kind is Kind.COUNT or join.kind.unmatched[1 - side]
    return not alone and (side == LEFT or join.kind.shows_right)


def _side(join: ResolvedJoin, event_time: object) -> int | None:
    """The side whose rows give results their event time; None: their place does, or they have none."""
    if event_time is None or event_time == LATER:
        return None
    left, right = join.roles
    if event_time not in join.roles:
        raise JoinError(
            f"event_time must be 'later', '{left}', '{right}' or None: the time of the row that a result belongs to, "
            f"or of its row of one side; not {event_time!r}"
        )
    side = join.roles.index(str(event_time))
    if join.as_of is not None and side == RIGHT:
        raise JoinError(
            f"event_time='{right}': an as-of join may choose a row of '{right}' again and again: use 'later' or "
            f"'{left}'"
        )
    if not _has_row(join, side):
        raise JoinError(
            f"event_time='{event_time}': a join of kind '{join.kind}' has results without a row of '{event_time}': "
            f"use 'later'" + (f" or '{join.roles[1 - side]}'" if join.kind in (Kind.LEFT, Kind.RIGHT) else "")
        )
    return side
