"""Reads the aggregates of a join, and decides whose rows they are for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from operators.protocol.sides import LEFT, RIGHT
from operators.query.condition import sides_of
from operators.query.errors import JoinError, PredicateError
from operators.query.expressions import Column, Expression
from operators.query.kinds import Kind
from operators.query.select_items import Aggregate, AggregateItem, ComputedItem, Item, SelectItem
from operators.values.selection import select_item

Select = Sequence[str | Expression | Item]


def read_aggregates(
    aggregate: Mapping[str, Aggregate] | None, select: Select | None, roles: tuple[str, str]
) -> tuple[tuple[AggregateItem, ...], int]:
    """The aggregates that `aggregate` names, and the side whose rows all aggregates are for, also those in `select`."""
    items = () if aggregate is None else tuple(_item(name, each, roles) for name, each in _named(aggregate, roles))
    listed = () if select is None or isinstance(select, str | Expression) else select
    every = [*(each for each in listed if isinstance(each, AggregateItem)), *items]
    return items, _side(every, roles)


def aggregate_kind(kind: Kind, *, closing: bool) -> Kind:
    """The kind of a join with aggregates; `closing`: its windows follow from a condition on the event times."""
    if kind is not Kind.INNER:
        raise JoinError(
            f"aggregate= and kind='{kind}' exclude each other: every row comes out with its aggregates, also one "
            "without matches; leave kind out"
        )
    return Kind.CLOSING if closing else Kind.AGGREGATE


def _named(aggregate: object, roles: tuple[str, str]) -> Sequence[tuple[str, Aggregate]]:
    example = f"{{'n': count(), 'most': max('{roles[RIGHT]}.price')}}"
    if not isinstance(aggregate, Mapping) or not aggregate:
        raise JoinError(f"aggregate must map names of results to aggregates, as in {example}, not {aggregate!r}")
    for name, each in aggregate.items():
        if not isinstance(name, str) or not name:
            raise JoinError(f"aggregate: the name of a result is a non-empty string, not {name!r}")
        if not isinstance(each, Aggregate):
            raise JoinError(f"aggregate '{name}' must be one such as in {example}, not {each!r}")
    return list(aggregate.items())


def _item(name: str, aggregate: Aggregate, roles: tuple[str, str]) -> AggregateItem:
    if aggregate.argument is None:
        return AggregateItem(aggregate.function, None, name)
    try:
        found = select_item(roles, aggregate.argument)
    except JoinError as error:
        raise JoinError(f"aggregate '{name}': {str(error).removeprefix('select: ')}") from None
    match found:
        case SelectItem(role, column) if column != "*":
            return AggregateItem(aggregate.function, Column(role, column), name)
        case ComputedItem(expression):
            return AggregateItem(aggregate.function, expression, name)
    raise JoinError(f"aggregate '{name}': {aggregate.argument!r} is not one value: name a column, or write count()")


def _side(items: Sequence[AggregateItem], roles: tuple[str, str]) -> int:
    """The side whose rows come out: the one that the aggregates do not name; the left if they name none."""
    asked = next((roles.index(item.rows) for item in items if item.rows is not None), None)
    found = asked
    for item in items:
        matched = set() if item.argument is None else _sides(item, item.argument, roles)
        if len(matched) == 2:
            raise JoinError(
                f"aggregate '{item.name}': `{item.argument!r}` names columns of both sides: an aggregate is over the "
                f"matches of a row, so it names columns of one side only"
            )
        for side in matched:
            if found is not None and found == side and asked is not None:
                own, other = roles[side], roles[1 - side]
                raise JoinError(
                    f"aggregate '{item.name}': `{item.argument!r}` belongs to '{own}', whose rows come out: aggregate "
                    f"columns of '{other}'"
                )
            if found is not None and found == side:
                raise JoinError(
                    f"aggregate '{item.name}': the aggregates name columns of '{roles[LEFT]}' and of '{roles[RIGHT]}', "
                    f"but each result is a row of one side: use a join for each"
                )
            found = 1 - side
    return LEFT if found is None else found


def _sides(item: AggregateItem, argument: Expression, roles: tuple[str, str]) -> set[int]:
    sides = sides_of(argument, roles)
    if not sides:
        raise PredicateError(f"aggregate '{item.name}': `{argument!r}` names no column of {roles[0]} or {roles[1]}")
    return sides
