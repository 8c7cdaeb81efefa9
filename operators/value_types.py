"""What a written comparison computes with: checked families, float64 or exact integers.

One rule decides the arithmetic, side by side of the comparison sign: a side that holds a float
column, a float constant or a division is float64 throughout, operation by operation as written;
any other side is exact integer arithmetic, without overflow. The two sides are then compared by
value, exactly. Dates and times are integers of a common tick.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta

from operators.errors import PredicateError
from operators.families import Family
from operators.key_types import KeyType
from operators.predicate import (
    LEFT,
    RIGHT,
    Chain,
    Combined,
    Comparison,
    ConstantValue,
    Step,
)

Term = Chain | Combined | ConstantValue
Types = tuple[KeyType, KeyType]

_NUMBERS = ("integer", "float")
_INSTANTS = ("timestamp", "zoned timestamp", "date")


def check_types(comparison: Comparison, types: Types) -> None:
    """Refuse a comparison whose columns and constants do not measure the same kind of thing."""
    checker = _Checker(comparison, types)
    subject, other = checker.family(comparison.subject), checker.family(comparison.object)
    if not _comparable(subject, other):
        checker.refuse(subject, "compared with", other)


def is_float(term: Term, types: Types) -> bool:
    """Whether this side of a comparison is computed in float64."""
    if any(types[chain.side].is_float for chain in _chains(term)):
        return True
    return any(s.operator == "/" or isinstance(s.constant, float) for s in _steps(term))


def common_tick(comparison: Comparison, types: Types) -> int:
    """The longest tick, in nanoseconds, that measures every time in the comparison exactly."""
    ticks = [kind.tick for kind in types]
    for term in (comparison.subject, comparison.object):
        constants = [step.constant for step in _steps(term)]
        if not isinstance(term, (Chain, Combined)):
            constants.append(term)
        ticks.extend(nanoseconds(c) for c in constants if isinstance(c, timedelta))
    return math.gcd(*ticks)


def linear(term: Term, types: Types, tick: int) -> tuple[int, int, int]:
    """``(a, b, c)`` so that the side is ``a * left key + b * right key + c`` ticks, exactly."""
    if isinstance(term, Combined):
        first, second = linear(term.first, types, tick), linear(term.second, types, tick)
        sign = 1 if term.operator == "+" else -1
        a, b, c = (x + sign * y for x, y in zip(first, second, strict=True))
    elif isinstance(term, Chain):
        kind = types[term.side]
        scale = kind.tick // tick
        a, b = (scale, 0) if term.side == LEFT else (0, scale)
        c = kind.offset * scale
    else:
        return 0, 0, _ticks(term, tick)
    for step in term.steps:
        amount = _ticks(step.constant, tick)
        if step.operator in ("+", "-"):
            c += amount if step.operator == "+" else -amount
        else:
            factor = amount if step.operator == "*" else -1
            a, b, c = a * factor, b * factor, c * factor
            if step.operator == "from":
                c += amount
    return a, b, c


def nanoseconds(length: timedelta) -> int:
    """A length of time in nanoseconds, exactly."""
    return length // timedelta(microseconds=1) * 1000


def _ticks(constant: ConstantValue, tick: int) -> int:
    if isinstance(constant, timedelta):
        return nanoseconds(constant) // tick
    assert isinstance(constant, int)
    return constant


def _chains(term: Term) -> Iterator[Chain]:
    if isinstance(term, Combined):
        yield from (term.first, term.second)
    elif isinstance(term, Chain):
        yield term


def _steps(term: Term) -> Iterator[Step]:
    for chain in _chains(term):
        yield from chain.steps
    if isinstance(term, Combined):
        yield from term.steps


def _comparable(one: Family, other: Family) -> bool:
    return (
        one == other
        or (one in _NUMBERS and other in _NUMBERS)
        or {one, other} == {"timestamp", "date"}
    )


class _Checker:
    """Families through the operations of one comparison, with its text at hand for messages."""

    def __init__(self, comparison: Comparison, types: Types) -> None:
        self.comparison = comparison
        self.types = types

    def family(self, term: Term) -> Family:
        if isinstance(term, Combined):
            first, second = self.family(term.first), self.family(term.second)
            family = self.combine(first, term.operator, second)
        elif isinstance(term, Chain):
            family = self.types[term.side].family
        elif isinstance(term, timedelta):
            return "duration"
        else:
            return "float" if isinstance(term, float) else "integer"
        for step in term.steps:
            family = self.after(family, step)
        return family

    def after(self, family: Family, step: Step) -> Family:
        if step.operator == "negate":
            if family not in (*_NUMBERS, "duration"):
                raise self.error(f"a {family} has no negative")
            return family
        constant = self.family(step.constant)
        if step.operator in ("*", "/"):
            if family in _NUMBERS:
                return family
            if family == "duration" and step.operator == "*" and constant == "integer":
                return family
            raise self.error(
                f"a {family} cannot be scaled by {step.constant!r}"
                + (", only by a whole number" if family == "duration" else "")
            )
        if step.operator == "from":
            return self.combine(constant, "-", family)
        return self.combine(family, step.operator, constant)

    def combine(self, one: Family, operator: str, other: Family) -> Family:
        if one in _NUMBERS and other in _NUMBERS:
            return "float" if "float" in (one, other) else "integer"
        if one == other == "duration":
            return "duration"
        if operator == "-" and one not in _NUMBERS and _comparable(one, other):
            return "duration"
        if one in _INSTANTS and other == "duration":
            return "timestamp" if one == "date" else one
        if operator == "+" and one == "duration" and other in _INSTANTS:
            return "timestamp" if other == "date" else other
        self.refuse(one, operator, other)
        raise AssertionError

    def refuse(self, one: Family, relation: str, other: Family) -> None:
        left, right = self.types
        shown = f"{left.column} is {left.arrow}, {right.column} is {right.arrow}"
        verb = f"{_article(one)} cannot be {relation} {_article(other)}"
        if relation in ("+", "-"):
            verb = f"{_article(one)} {relation} {_article(other)} has no meaning"
        raise self.error(f"{verb} ({shown}); {self.remedy({one, other})}")

    def remedy(self, families: set[Family]) -> str:
        naive = [k for k in self.types if k.family in ("timestamp", "date")]
        if "zoned timestamp" in families and naive:
            column = naive[0].column
            cell = f'table["{column}"]'
            if naive[0].family == "date":
                cell += '.cast("timestamp[us]")'
            return f'give {column} a zone: pc.assume_timezone({cell}, "UTC")'
        temporal = [k for k in self.types if k.is_temporal]
        if len(temporal) == 1:
            column, width = temporal[0].column, temporal[0].arrow.bit_width
            return f'cast {column} to a number: table["{column}"].cast("int{width}")'
        if temporal and families & set(_NUMBERS):
            return "write a length of time: datetime.timedelta(..) or INTERVAL '5' MINUTE"
        if not temporal:
            return "write a plain number instead of a length of time"
        if "time of day" in families:
            return "compare the difference instead: abs(left - right) <= INTERVAL '5' MINUTE"
        return f"cast one column to the type of the other, such as {self.types[RIGHT].arrow}"

    def error(self, message: str) -> PredicateError:
        return PredicateError(f"`{self.comparison.written}`: {message}")


def _article(family: Family) -> str:
    return f"an {family}" if family[0] in "aeiou" else f"a {family}"
