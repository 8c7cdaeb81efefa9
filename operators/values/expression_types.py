"""Types of expressions: what each part measures, what can be combined, and the Arrow type of the result.

Two rules decide the arithmetic of a comparison's operands (a selected expression is one operand):
- If a decimal occurs on either side, the whole comparison is exact. Constants are the decimals as written, and columns
  of floats are refused.
- Otherwise an operand with a float or a division is float64 throughout, operation by operation as written, and any
  other operand is exact. The two operands are compared by value.

A function is to its operand what a column is: a value of a type. Each of its arguments is an operand of its own.

What is written takes the type of what it meets, in three places. Text beside a date or a time is read as one. A whole
number that is added to a date, or compared with the difference of two dates, is a number of days. A number beside a
column of float32 is the nearest float32, since ``R.f = 0.1`` asks for the column's 0.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import NoReturn

import numpy as np
import pyarrow as pa

from operators.functions.arguments import Argument, ArgumentError, plain, read_time
from operators.functions.builtins import BUILTINS
from operators.functions.composed_values import alike
from operators.functions.families import (
    COMPOSED,
    NUMBERS,
    TEXTS,
    TIMES,
    Family,
    article,
    combined,
    comparable,
    scaled,
)
from operators.functions.type_casts import cast_type
from operators.query.constants import ConstantValue
from operators.query.errors import PredicateError
from operators.query.expressions import (
    Absolute,
    Alias,
    And,
    Apply,
    Arithmetic,
    Between,
    Call,
    Cast,
    Column,
    Compare,
    Constant,
    Distinct,
    Expression,
    In,
    IsNull,
    IsTruth,
    Negate,
    Not,
    Or,
    columns_in,
)
from operators.values.casts import remedy
from operators.values.constant_types import TICKS, constant_fraction, constant_type, exact_constant
from operators.values.exact_columns import common_unit
from operators.values.key_types import KeyType, key_type, plain_type

ColumnType = Callable[[Column], pa.DataType]

_CONDITIONS = (Compare, Between, And, Or, Not, IsNull, IsTruth, Distinct)
_DAY = timedelta(days=1)
_DAY_TICKS = exact_constant(date(1970, 1, 2))[1]


@dataclass(frozen=True)
class Measure:
    """What an expression measures: whole numbers from ends[0] to ends[1], times a unit."""

    family: Family
    unit: Fraction = Fraction(1)
    ends: tuple[int, int] = (0, 0)
    zone: str | None = None


class ExpressionTypes:
    """Checks one expression over columns of known types, and caches what it finds about each part."""

    def __init__(self, column_type: ColumnType) -> None:
        self._column_type = column_type
        self._decimals: dict[tuple[int, ...], bool] = {}
        self._floats: dict[tuple[int, bool], bool] = {}
        self._results: dict[int, pa.DataType] = {}
        self._columns: dict[tuple[str | None, str], KeyType] = {}
        self._arguments: dict[int, tuple[Argument, ...]] = {}
        self._operands: dict[tuple[int, int], tuple[Expression, Expression]] = {}
        self._days: set[int] = set()

    def result(self, expression: Expression) -> pa.DataType:
        """The Arrow type of the values of ``expression``; checks the whole expression."""
        match expression:
            case Alias(operand, _):
                return self.result(operand)
            case Column():
                return self._column_type(expression)
            case Constant(value):
                return constant_type(value)
            case Call() | Apply() | Cast():
                return self._function(expression)
        if is_condition(expression):
            self.check_condition(expression)
            return pa.bool_()
        if id(expression) not in self._results:
            measure = self.measure(expression, expression, self.has_decimals(expression))
            null = measure.family == "null"
            self._results[id(expression)] = pa.null() if null else _result_type(measure, expression)
        return self._results[id(expression)]

    def check_condition(self, condition: Expression) -> None:
        """Raise PredicateError for a non-condition, and for comparisons of types that do not compare."""
        match condition:
            case Compare(_, left, right):
                self._check_comparison(condition, left, right)
            case Between(operand, low, high):
                self._check_comparison(condition, operand, low)
                self._check_comparison(condition, operand, high)
            case In(operand=operand, values=values):
                # One constant of each type is enough, but text may have to be read as a time.
                times = self._leaf_family(operand) in TIMES if isinstance(operand, Column) else True
                once = {
                    type(v.value) if isinstance(v, Constant) and not (times and isinstance(v.value, str)) else index: v
                    for index, v in enumerate(values)
                }
                for value in once.values():
                    self._check_comparison(Compare("=", operand, value), operand, value)
            case And(left, right) | Or(left, right):
                self.check_condition(left)
                self.check_condition(right)
            case Not(operand) | IsTruth(operand):
                self.check_condition(operand)
            case IsNull(operand):
                self.result(operand)
            case Distinct(left, right):
                self._check_comparison(condition, left, right)
            case Call() | Apply() | Cast():
                found = self.result(condition)
                if not (pa.types.is_boolean(found) or pa.types.is_null(found)):
                    raise PredicateError(f"`{condition!r}` is {found}, not a condition: compare it with something")
            case Constant(bool()) | Constant(None):
                pass
            case Column() if pa.types.is_boolean(plain_type(self._column_type(condition))):
                pass
            case Column():
                raise PredicateError(
                    f"`{condition!r}` is {self._column_type(condition)}, not a condition: "
                    "compare it with something, or use a column of booleans"
                )
            case _:
                raise PredicateError(f"`{condition!r}` is a value where a condition is expected: compare it")

    def has_decimals(self, *operands: Expression) -> bool:
        """Whether constants in a comparison of the operands are decimals."""
        place = tuple(map(id, operands))
        if place not in self._decimals:
            families = (self._leaf_family(leaf) for operand in operands for leaf in leaves(operand))
            self._decimals[place] = any(family == "decimal" for family in families)
        return self._decimals[place]

    def is_float(self, operand: Expression, decimals: bool) -> bool:
        """Whether an operand is computed in float64."""
        place = (id(operand), decimals)
        if place not in self._floats:
            families = (self._leaf_family(leaf) for leaf in leaves(operand))
            floats = divides(operand) or any(family == "float" for family in families)
            self._floats[place] = floats and not decimals
        return self._floats[place]

    def column(self, leaf: Expression) -> KeyType:
        """What a column, or a function, measures."""
        if not isinstance(leaf, Column):
            return key_type(repr(leaf), self.result(leaf))
        place = (leaf.stream, leaf.name)
        if place not in self._columns:
            self._columns[place] = replace(key_type(leaf.name, self._column_type(leaf)), role=leaf.stream)
        return self._columns[place]

    def arguments(self, call: Expression) -> tuple[Argument, ...]:
        """What is known of the arguments of a function whose result has been checked."""
        return self._arguments[id(call)]

    def operands(self, left: Expression, right: Expression) -> tuple[Expression, Expression]:
        """The operands of a comparison, what is written in the type of what it meets."""
        place = (id(left), id(right))
        if place not in self._operands:
            self._operands[place] = self._met(left, right), self._met(right, left)
        return self._operands[place]

    def counts_days(self, term: Expression) -> bool:
        """Whether whole numbers in a sum with dates, which has been checked, are days."""
        return id(term) in self._days

    def is_null(self, operand: Expression) -> bool:
        """Whether a null that is written makes the operand null."""
        return any(self._leaf_family(leaf) == "null" for leaf in leaves(operand))

    def family(self, term: Expression) -> Family:
        """What a column or a constant measures."""
        return self._leaf_family(term)

    def measure(self, term: Expression, within: Expression, decimals: bool) -> Measure:
        """What a value measures; ``within`` is the expression that error messages quote."""
        match term:
            case Column() | Apply() | Cast() | Call():
                if self._leaf_family(term) == "null":
                    return Measure("null")
                kind = self.column(term)
                zone = getattr(plain_type(kind.arrow), "tz", None)
                return Measure(kind.family, kind.unit, _ends_of(kind.arrow), zone)
            case Constant(value):
                return _constant(value, decimals)
            case Negate(operand) | Absolute(operand):
                measure = self.measure(operand, within, decimals)
                if measure.family not in (*NUMBERS, "duration", "null"):
                    fault = "cannot be negated" if isinstance(term, Negate) else "has no absolute value"
                    raise _error(within, f"{article(measure.family)} {fault}")
                size = max(map(abs, measure.ends))
                return Measure(measure.family, measure.unit, (-size, size))
            case Arithmetic():
                return self._arithmetic(term, within, decimals)
            case Alias():
                raise _error(within, f"`{term!r}`: only a selected column can have an alias")
        self.check_condition(term)
        return Measure("integer", ends=(0, 1))

    def _arithmetic(self, term: Arithmetic, within: Expression, decimals: bool) -> Measure:
        one, other = (self.measure(each, within, decimals) for each in (term.left, term.right))
        if "null" in (one.family, other.family):
            return Measure("null")
        scaling = term.operator in ("*", "/")
        if not scaling and {one.family, other.family} == {"date", "integer"}:
            self._days.add(id(term))
            one, other = (_in_days(each) for each in (one, other))
        family = (scaled if scaling else combined)(one.family, term.operator, other.family)
        if family == "timestamp" and id(term) in self._days and one.unit == other.unit:
            family = "date"  # whole days later; a date64 holds milliseconds
        if family is None:
            if scaling and not {one.family, other.family} & {*TEXTS} and {one.family, other.family} & {*TIMES}:
                timed = one if one.family in TIMES else other
                only = ", only by a whole number" if timed.family == "duration" else ""
                by = term.right if timed is one else term.left
                raise _error(within, f"{article(timed.family)} cannot be scaled by {by!r}{only}")
            self._refuse(within, f"{article(one.family)} {term.operator} {article(other.family)} has no meaning",
                         {one.family, other.family})  # fmt: skip
        ends = [x * y for x in one.ends for y in other.ends]
        if term.operator == "/" and decimals:
            divisor = constant_fraction(term.right)
            if divisor is None:
                raise _error(within, f"`{term!r}` divides by a column, which is not exact: multiply both sides by it")
            if divisor == 0:
                raise _error(within, f"`{term!r}` divides by zero")
            size = max(map(abs, one.ends))
            return Measure("decimal", one.unit / abs(divisor), (-size, size))
        if term.operator == "*":
            return Measure(family, one.unit * other.unit, (min(ends), max(ends)))
        unit = common_unit(one.unit, other.unit)
        sizes = [max(map(abs, each.ends)) * (each.unit / unit).numerator for each in (one, other)]
        return Measure(family, unit, (-sum(sizes), sum(sizes)), one.zone or other.zone)

    def _check_comparison(self, written: Expression, left: Expression, right: Expression) -> None:
        try:
            left, right = self.operands(left, right)
        except ArgumentError as error:
            raise _error(written, str(error)) from None
        decimals = self.has_decimals(left, right)
        one, other = (self.measure(each, written, decimals).family for each in (left, right))
        if not comparable(one, other):
            relation = f"{article(one)} cannot be compared with {article(other)}"
            self._refuse(written, relation, {one, other})
        for each, beside in ((left, right), (right, left)):
            if is_condition(each) and not self._is_truth(beside):
                raise _error(written, f"`{each!r}` is a condition where a value is expected: compare it with "
                             "conditions, TRUE and FALSE only; join conditions with AND (&)")  # fmt: skip
        if one in COMPOSED and other in COMPOSED:
            check_shapes(written, self.result(left), self.result(right))

    def _is_truth(self, operand: Expression) -> bool:
        """Whether an operand is a condition, a boolean or null."""
        if is_condition(operand) or self.is_null(operand):
            return True
        single = isinstance(operand, Column | Constant | Apply | Cast | Call)
        return single and bool(pa.types.is_boolean(plain_type(self.result(operand))))

    def _met(self, operand: Expression, beside: Expression) -> Expression:
        """An operand in the type of the one beside it, if it is a constant that has none of its own."""
        match operand:
            case Constant(str() as text):
                if not isinstance(beside, Constant):
                    met = self.measure(beside, beside, self.has_decimals(beside))
                    if met.family in TIMES and met.family != "duration":
                        return Constant(read_time(text, _result_type(met, beside)))
            case Constant(float() as number):
                kind = self._narrow_float(beside)
                if kind is not None:
                    with np.errstate(over="ignore"):
                        nearest = float(kind.to_pandas_dtype()(number))
                    return Constant(nearest) if math.isfinite(nearest) else operand
            case Negate(Constant() as inner) if self._met(inner, beside) is not inner:
                return Negate(self._met(inner, beside))
        if self._is_difference_of_dates(beside) and self.measure(operand, operand, False).family == "integer":
            return Arithmetic("*", operand, Constant(_DAY))
        return operand

    def _narrow_float(self, operand: Expression) -> pa.DataType | None:
        """float32 or float16 if a value of it, with either sign, is the operand; else None."""
        match operand:
            case Negate(inner) | Absolute(inner) | Arithmetic("-", Constant(0), inner):
                return self._narrow_float(inner)
            case Arithmetic("*", Constant(1 | -1), inner) | Arithmetic("*", inner, Constant(1 | -1)):
                return self._narrow_float(inner)
            case Column() | Apply() | Cast() | Call():
                kind = plain_type(self.result(operand))
                return kind if pa.types.is_float32(kind) or pa.types.is_float16(kind) else None
        return None

    def _is_difference_of_dates(self, term: Expression) -> bool:
        match term:
            case Negate(operand) | Absolute(operand):
                return self._is_difference_of_dates(operand)
            case Arithmetic("-", left, right) if any(self._leaf_family(leaf) == "date" for leaf in leaves(term)):
                return all(self.measure(each, term, False).family == "date" for each in (left, right))
        return False

    def _function(self, call: Expression) -> pa.DataType:
        """The type of a function's values."""
        if id(call) in self._results:
            return self._results[id(call)]
        given: tuple[Expression, ...] = (call.operand,) if isinstance(call, Cast) else call.arguments  # type: ignore[attr-defined]
        if isinstance(call, Call):
            for each in given:
                self.result(each)
            found = pa.bool_() if call.returns is None else call.returns
        else:
            arguments = tuple(map(self._argument, given))
            try:
                if isinstance(call, Cast):
                    found = cast_type(arguments[0], call.target)
                else:
                    assert isinstance(call, Apply), "the kinds of functions"
                    found = BUILTINS[call.name].result(arguments)
            except ArgumentError as error:
                raise _error(call, f"{error}{self._shown(call)}") from None
            self._arguments[id(call)] = arguments
        self._results[id(call)] = found
        return found

    def _argument(self, given: Expression) -> Argument:
        kind = plain_type(self.result(given))
        constant = isinstance(given, Constant)
        value = given.value if isinstance(given, Constant) else None
        if pa.types.is_null(kind):
            return Argument("null", kind, constant)
        if isinstance(value, datetime | timedelta):  # in the coarsest unit, so that columns keep theirs
            unit = next(name for name, tick in TICKS if exact_constant(value)[1] % tick == 0)
            kind = pa.timestamp(unit, kind.tz) if isinstance(value, datetime) else pa.duration(unit)
        family = self._leaf_family(given) if constant else key_type(repr(given), plain(kind)).family
        return Argument(family, plain(kind), constant, value)

    def _shown(self, written: Expression) -> str:
        columns = list({repr(column): column for column in columns_in(written)}.values())
        shown = ", ".join(f"{column!r} is {self._column_type(column)}" for column in columns)
        return f" ({shown})" if columns else ""

    def _refuse(self, written: Expression, reason: str, families: set[Family]) -> NoReturn:
        columns = list({repr(column): column for column in columns_in(written)}.values())
        shown = ", ".join(f"{column!r} is {self._column_type(column)}" for column in columns)
        cast = remedy([self.column(column) for column in columns], families)
        raise _error(written, f"{reason} ({shown}); {cast}" if columns else f"{reason}; {cast}")

    def _leaf_family(self, leaf: Expression) -> Family:
        match leaf:
            case Column():
                return self.column(leaf).family
            case Apply() | Cast() | Call():
                return "null" if pa.types.is_null(self.result(leaf)) else self.column(leaf).family
            case Constant(value):
                return _constant(value, decimals=False).family
        return "integer"


def is_condition(expression: Expression) -> bool:
    """Whether an expression is a condition by its form."""
    return isinstance(expression, _CONDITIONS)


def leaves(operand: Expression) -> Iterator[Expression]:
    """The columns, constants and conditions that a value is computed from."""
    match operand:
        case Negate(inner) | Absolute(inner) | Alias(inner, _):
            yield from leaves(inner)
        case Arithmetic(_, left, right):
            yield from leaves(left)
            yield from leaves(right)
        case _:
            yield operand


def divides(operand: Expression) -> bool:
    """Whether a value is computed with a division."""
    match operand:
        case Negate(inner) | Absolute(inner) | Alias(inner, _):
            return divides(inner)
        case Arithmetic(operator, left, right):
            return operator == "/" or divides(left) or divides(right)
    return False


def check_shapes(written: object, one: pa.DataType, other: pa.DataType) -> None:
    """Raise PredicateError if lists or structs of two types do not compare."""
    if not alike(one, other):
        raise PredicateError(f"`{written}`: {one} cannot be compared with {other}: CAST one to the type of the other")


def _in_days(measure: Measure) -> Measure:
    """A whole number as a length of days; a date as it is."""
    if measure.family != "integer":
        return measure
    return Measure("duration", measure.unit * _DAY_TICKS, measure.ends)


def _constant(value: ConstantValue | None, decimals: bool) -> Measure:
    if value is None:
        return Measure("null")
    families: list[tuple[type, Family]] = [
        (bool, "integer"), (int, "integer"), (Decimal, "decimal"), (float, "decimal" if decimals else "float"),
        (str, "string"), (bytes, "binary"), (timedelta, "duration"), (time, "time of day"), (datetime, "timestamp"),
        (date, "date"),
    ]  # fmt: skip
    family = next(family for kind, family in families if isinstance(value, kind))
    if isinstance(value, datetime) and value.tzinfo is not None:
        return Measure("zoned timestamp", exact_constant(value)[1], zone="UTC")
    if family in (*TEXTS, "float"):
        return Measure(family)
    number, unit = exact_constant(value)
    return Measure(family, unit, (number, number))


def _ends_of(arrow: pa.DataType) -> tuple[int, int]:
    plain = plain_type(arrow)
    types = pa.types
    if types.is_boolean(plain):
        return 0, 1
    if types.is_unsigned_integer(plain):
        return 0, 2**plain.bit_width - 1
    if types.is_decimal(plain):
        return 1 - 10**plain.precision, 10**plain.precision - 1
    return -(2**63), 2**63 - 1


def _result_type(measure: Measure, expression: Expression) -> pa.DataType:
    match measure.family:
        case "integer":
            return pa.int64()
        case "float":
            return pa.float64()
        case "decimal":
            scale = next((s for s in range(77) if (measure.unit * 10**s).denominator == 1), None)
            if scale is None:
                raise _error(expression, "the quotient is not a finite decimal; multiply instead of dividing, "
                             'or cast the column to "float64"')  # fmt: skip
            size = max(map(abs, measure.ends)) * (measure.unit * 10**scale).numerator
            digits = max(len(str(size)), scale, 1)
            return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(min(digits, 76), scale)
        case "date":
            return pa.date32()
        case "time of day":
            return pa.time64("us")
        case "timestamp" | "zoned timestamp" | "duration":
            unit = next(name for name, tick in TICKS if measure.unit % tick == 0)
            return pa.duration(unit) if measure.family == "duration" else pa.timestamp(unit, measure.zone)
    raise AssertionError(f"no arithmetic gives {article(measure.family)}")


def _error(written: Expression, message: str) -> PredicateError:
    return PredicateError(f"`{written!r}`: {message}")
