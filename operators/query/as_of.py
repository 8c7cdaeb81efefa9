"""As-of joins: each left row with the one right row that is nearest to it in event time (docs/semantics.md, As-of).

The condition of an as-of join holds equalities between the streams and conditions on one stream. It may also compare
the event times, which says where to look: ``T.ts >= Q.ts`` is backward, ``T.ts < Q.ts`` is forward, and leaves
out rows of equal time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

from operators.query.comparison_operators import is_lower, is_upper, mirrored, strict
from operators.query.condition import conjunction, conjuncts, sides_of, without_not
from operators.query.durations import Duration, checked_duration, written
from operators.query.errors import DurationError, JoinError, PredicateError
from operators.query.expressions import Column, Compare, Constant, Expression

Direction = Literal["backward", "forward", "nearest"]
"""Where an as-of join looks: at rows up to its own time, from its own time on, or both ways."""


@dataclass(frozen=True)
class AsOf:
    """How an as-of join chooses.

    direction: where it looks.
    strict:    rows of equal event time do not count.
    tolerance: how far from the left row's event time the right row's may be; None: any distance.
    """

    direction: Direction = "backward"
    strict: bool = False
    tolerance: int | float | timedelta | None = None

    def __str__(self) -> str:
        equal = ", without rows of equal time" if self.strict else ""
        within = "" if self.tolerance is None else f", within {written(self.tolerance)}"
        return f"{self.direction}{equal}{within}"


def read_as_of(
    condition: Expression,
    left: tuple[str, str],
    right: tuple[str, str],
    direction: object = None,
    tolerance: Duration | None = None,
) -> tuple[AsOf, Expression]:
    """Return how to choose, and the condition without the comparison of the event times.

    left, right: the role and the event-time column of each side.
    direction:   what the user asked for; None: what the condition says, else backward.
    """
    if direction is not None and direction not in get_args(Direction):
        raise JoinError(f"direction must be one of {', '.join(map(repr, get_args(Direction)))}, not {direction!r}")
    roles, times = (left[0], right[0]), (Column(*left), Column(*right))
    found: tuple[Direction, bool] | None = None
    rest: list[Expression] = []
    for part in conjuncts(without_not(condition, roles)):
        said = _of_times(part, *times)
        if said is None:
            _check(part, roles)
            rest.append(part)
        elif found is not None or direction not in (None, said[0]):
            raise PredicateError(
                f"`{part!r}` contradicts direction={(found or (direction,))[0]!r}: say once where the as-of join looks"
            )
        else:
            found = said
    wanted, apart = found or (direction or "backward", False)
    kept = conjunction(rest) if rest else Constant(True)
    return AsOf(wanted, apart, _checked_tolerance(tolerance)), kept  # type: ignore[arg-type]


def _of_times(part: Expression, left: Column, right: Column) -> tuple[Direction, bool] | None:
    """What a comparison of the two event times says: the direction, and whether equal times are left out."""
    if not isinstance(part, Compare) or not (is_lower(part.operator) or is_upper(part.operator)):
        return None
    operator, sides = part.operator, (repr(part.left), repr(part.right))
    if sides == (repr(right), repr(left)):
        operator, sides = mirrored(operator), sides[::-1]
    if sides != (repr(left), repr(right)):
        return None
    return ("backward" if is_lower(operator) else "forward"), operator == strict(operator)


def _check(part: Expression, roles: tuple[str, str]) -> None:
    """Refuse what is neither an equality of two columns nor about one stream."""
    if len(sides_of(part, roles)) < 2:
        return
    match part:
        case Compare("=", Column(), Column()):
            return
    raise PredicateError(
        f"`{part!r}`: the condition of an as-of join takes equalities between columns of {roles[0]} and {roles[1]}, "
        f"conditions on one of them, and one comparison of their event times: filter the results instead"
    )


def _checked_tolerance(tolerance: Duration | None) -> int | float | timedelta | None:
    if tolerance is None:
        return None
    try:
        checked = checked_duration(tolerance)
    except DurationError as error:
        raise JoinError(f"tolerance: {error}") from None
    if checked < (timedelta(0) if isinstance(checked, timedelta) else 0):  # type: ignore[operator]
        raise JoinError(f"tolerance must not be negative: {written(tolerance)}")
    return checked
