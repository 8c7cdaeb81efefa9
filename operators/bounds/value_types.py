"""The arithmetic of a comparison: families are checked, and each side is float64 or exact.

If a decimal occurs in a comparison, the whole comparison is exact, and constants are the decimals as written. Otherwise
each side is judged alone: a side with a float column, a float constant or a division is float64 throughout, operation
by operation as written; any other side is exact and cannot overflow. The two sides are then compared by value, exactly.
Dates and times are numbers of nanoseconds; a whole number that is added to a date, or compared with the difference of
two dates, is a number of days.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

from operators.functions.families import COMPOSED, NUMBERS, TEXTS, TIMES, Family, article, combined, comparable, scaled
from operators.protocol.sides import LEFT
from operators.query.constant_arithmetic import exact_number
from operators.query.errors import PredicateError
from operators.query.predicate import (
    Chain,
    Combined,
    Comparison,
    ConstantValue,
    Operation,
)
from operators.values.casts import remedy
from operators.values.expression_types import check_shapes
from operators.values.key_types import KeyType

_DAY = 86_400_000_000_000
Term = Chain | Combined | ConstantValue
Types = tuple[KeyType, KeyType]


def check_types(comparison: Comparison, types: Types) -> None:
    """Raise PredicateError if the two sides of a comparison cannot be compared."""
    checker = _Checker(comparison, types)
    subject, other = checker.family(comparison.subject), checker.family(comparison.object)
    if other == "integer" and is_difference_of_dates(comparison.subject, types):
        return
    if not comparable(subject, other):
        checker.refuse(subject, "compared with", other)
    if subject in COMPOSED:
        check_shapes(comparison.written, types[0].arrow, types[1].arrow)


def is_difference_of_dates(term: Term, types: Types) -> bool:
    """Whether a side is one date minus another, and nothing more."""
    plain = isinstance(term, Combined) and term.operator == "-" and not term.operations
    return plain and all(types[chain.side].family == "date" for chain in _chains(term))


def has_decimals(comparison: Comparison, types: Types) -> bool:
    """Whether the comparison's constants are decimals."""
    if any(kind.family == "decimal" for kind in types):
        return True
    return any(isinstance(constant, Decimal) for constant in _constants(comparison))


def is_float(term: Term, comparison: Comparison, types: Types) -> bool:
    """Whether this side of a comparison is computed in float64."""
    if has_decimals(comparison, types):
        return False
    if any(types[chain.side].is_float for chain in _chains(term)):
        return True
    return any(one.operator == "/" or isinstance(one.constant, float) for one in _operations(term))


def linear(term: Term, types: Types, in_days: bool = False) -> tuple[Fraction, Fraction, Fraction]:
    """``(a, b, c)`` so that the side is ``a * left key + b * right key + c``, exactly; times in nanoseconds.

    in_days: a whole number alone is a number of days.
    """
    if isinstance(term, Combined):
        first, second = linear(term.first, types), linear(term.second, types)
        sign = 1 if term.operator == "+" else -1
        a, b, c = (x + sign * y for x, y in zip(first, second, strict=True))
    elif isinstance(term, Chain):
        kind = types[term.side]
        a, b = (kind.unit, Fraction(0)) if term.side == LEFT else (Fraction(0), kind.unit)
        c = kind.offset * kind.unit
    else:
        return Fraction(0), Fraction(0), exact_value(term) * (_DAY if in_days and isinstance(term, int) else 1)
    dated = isinstance(term, Chain) and types[term.side].family == "date"
    for operation in term.operations:
        amount = exact_value(operation.constant)
        if dated and isinstance(operation.constant, int):
            amount *= _DAY
        if operation.operator in ("+", "-"):
            c += amount if operation.operator == "+" else -amount
            continue
        factor = {"*": amount, "/": 1 / amount if amount else amount}.get(operation.operator, Fraction(-1))
        a, b, c = a * factor, b * factor, c * factor
        if operation.operator == "from":
            c += amount
    return a, b, c


def exact_value(constant: ConstantValue) -> Fraction:
    """A constant exactly as written: a length of time in nanoseconds, a float as the decimal that it prints as."""
    if isinstance(constant, timedelta):
        return Fraction(constant // timedelta(microseconds=1) * 1000)
    return exact_number(constant)


def _constants(comparison: Comparison) -> Iterator[ConstantValue]:
    for term in (comparison.subject, comparison.object):
        yield from (operation.constant for operation in _operations(term))
        if not isinstance(term, (Chain, Combined)):
            yield term


def _chains(term: Term) -> Iterator[Chain]:
    if isinstance(term, Combined):
        yield from (term.first, term.second)
    elif isinstance(term, Chain):
        yield term


def _operations(term: Term) -> Iterator[Operation]:
    for chain in _chains(term):
        yield from chain.operations
    if isinstance(term, Combined):
        yield from term.operations


class _Checker:
    """Follows families through the operations of one comparison."""

    def __init__(self, comparison: Comparison, types: Types) -> None:
        self.comparison = comparison
        self.types = types
        self.written_float: Family = "decimal" if has_decimals(comparison, types) else "float"

    def family(self, term: Term) -> Family:
        if isinstance(term, Combined):
            family = self.combine(self.family(term.first), term.operator, self.family(term.second))
        elif isinstance(term, Chain):
            family = self.types[term.side].family
        elif isinstance(term, timedelta):
            return "duration"
        elif isinstance(term, float):
            return self.written_float
        else:
            return "decimal" if isinstance(term, Decimal) else "integer"
        for operation in term.operations:
            family = self.after(family, operation)
        return family

    def after(self, family: Family, operation: Operation) -> Family:
        if operation.operator == "negate":
            if family not in (*NUMBERS, "duration"):
                raise self.error(f"{article(family)} cannot be negated")
            return family
        constant = self.family(operation.constant)
        if family == "date" and constant == "integer" and operation.operator in ("+", "-"):
            return family
        if operation.operator in ("*", "/"):
            found = scaled(family, operation.operator, constant)
            if found is None and family in TIMES and constant in NUMBERS:
                only = ", only by a whole number" if family == "duration" else ""
                raise self.error(f"{article(family)} cannot be scaled by {operation.constant!r}{only}")
            if found is None:
                self.refuse(family, operation.operator, constant)
            return self.written_float if found == "float" and family != "float" else found or family
        if operation.operator == "from":
            return self.combine(constant, "-", family)
        return self.combine(family, operation.operator, constant)

    def combine(self, one: Family, operator: str, other: Family) -> Family:
        found = combined(one, operator, other)
        if found is None:
            self.refuse(one, operator, other)
        assert found is not None
        return found

    def refuse(self, one: Family, relation: str, other: Family) -> None:
        left, right = self.types
        shown = f"{left.column} is {left.arrow}, {right.column} is {right.arrow}"
        verb = f"{article(one)} cannot be {relation} {article(other)}"
        if relation in ("+", "-", "*", "/"):
            verb = f"{article(one)} {relation} {article(other)} has no meaning"
            if one in TEXTS and other in TEXTS:
                raise self.error(f"{verb} ({shown}); compare the columns as they are")
        raise self.error(f"{verb} ({shown}); {remedy(self.types, {one, other})}")

    def error(self, message: str) -> PredicateError:
        return PredicateError(f"`{self.comparison.written}`: {message}")
