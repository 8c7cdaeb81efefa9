"""Evaluates expressions over Arrow columns, exactly and column by column.

Integers of any width, decimals, dates and times compute without overflow and compare by value; floats compute in
float64 as written and compare with integers by value; strings compare by code point, binary by byte. A comparison in
which an operand is null or NaN is unknown, and AND, OR and NOT follow SQL's three-valued logic. The rules for types
are those of `values.expression_types`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.functions.arguments import known
from operators.functions.builtins import BUILTINS
from operators.functions.composed_values import encoded
from operators.functions.decimal_numbers import decimal_array, decimal_numbers
from operators.functions.families import COMPOSED, TEXTS
from operators.functions.type_casts import cast
from operators.query.comparison_operators import COMPARE, ComparisonOperator, mirrored
from operators.query.constant_arithmetic import float_constant
from operators.query.errors import PredicateError
from operators.query.expressions import (
    Absolute,
    Alias,
    And,
    Apply,
    Arithmetic,
    ArithmeticOperator,
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
)
from operators.values.checked_expressions import Identity, checked_types, column_name, parts_of
from operators.values.constant_types import TICKS, constant_fraction, exact_constant
from operators.values.exact_columns import (
    INT64_MAX,
    INT64_MIN,
    ExactColumn,
    both,
)
from operators.values.expression_types import ColumnType, ExpressionTypes, is_condition
from operators.values.key_types import decoded, stored_values
from operators.values.truth import Truth, bools, truth_of, validity

_FLOAT_ARITHMETIC: dict[ArithmeticOperator, Callable[[Any, Any], Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide,
}  # fmt: skip
_ARROW_COMPARE: dict[ComparisonOperator, Callable[[Any, Any], Any]] = {
    "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal, "=": pc.equal, "!=": pc.not_equal,
}  # fmt: skip


_DAY = Fraction(86_400_000_000_000)


def type_of(expression: Expression, column_type: ColumnType) -> pa.DataType:
    """The Arrow type that `evaluate` returns, given the types of the columns; checks the whole expression.

    Columns keep their type. Arithmetic on integers gives int64, on floats float64, on decimals a decimal of as many
    digits as it takes (at most 76), on dates and times a timestamp or a duration of the coarsest unit that is exact.
    Conditions give booleans. Raises PredicateError, which names the types that do not fit and the cast to write.
    """
    return ExpressionTypes(column_type).result(expression)


def evaluate(expression: Expression, column: Callable[[Column], pa.Array], rows: int | None = None) -> pa.Array:
    """The values of ``expression``; for a condition one boolean per row, null where it is unknown.

    column: returns a column; all have one length. Called once per column.
    rows:   the number of rows; needed only if the expression has no column.

    Raises PredicateError if a result does not fit its type (see `type_of`).

    Cost: O(rows) in NumPy and Arrow per operation, without copies of int64 and float64 columns; numbers that could
    overflow 64 bits take Python integers, several hundred nanoseconds each.
    """
    parts = parts_of(Identity(expression))
    arrays = {name: _one_array(column(each)) for name, each in parts.columns.items()}
    if arrays:
        rows = len(next(iter(arrays.values())))
    assert rows is not None, "without a column, the number of rows has to be given"
    kinds = tuple(array.type for array in arrays.values())
    types = checked_types(Identity(expression), kinds)
    return _Evaluation(arrays, types, parts.constants, rows).result(expression)


def _one_array(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


@dataclass(frozen=True)
class _Floats:
    values: np.ndarray | float
    valid: np.ndarray | None = None


_Value = ExactColumn | _Floats


class _Evaluation:
    """Evaluates checked expressions over one batch of rows."""

    def __init__(
        self,
        arrays: dict[tuple[str | None, str], pa.Array],
        types: ExpressionTypes,
        constants: frozenset[int],
        rows: int,
    ) -> None:
        self._arrays = arrays
        self._types = types
        self._constants = constants
        self._rows = rows
        self._computed: dict[int, pa.Array] = {}

    def result(self, expression: Expression) -> pa.Array:
        match expression:
            case Alias(operand, _):
                return self.result(operand)
            case Column():
                return self._arrays[column_name(expression)]
            case Constant(value):
                kind = self._types.result(expression)
                scalar = Decimal(value) if pa.types.is_decimal(kind) and isinstance(value, int) else value
                return pa.repeat(pa.scalar(scalar, kind), self._rows)
            case Call() | Apply() | Cast():
                if id(expression) not in self._computed:
                    self._computed[id(expression)] = self._function(expression)
                return self._computed[id(expression)]
        if is_condition(expression):
            return self.condition(expression).to_arrow()
        if pa.types.is_null(self._types.result(expression)):
            return pa.nulls(self._rows)
        decimals = self._types.has_decimals(expression)
        computed = self._value(expression, decimals)
        return self._to_arrow(computed, self._types.result(expression), expression)

    def condition(self, condition: Expression) -> Truth:
        match condition:
            case Compare(sign, left, right):
                return self._compare(sign, left, right)
            case Between(operand, low, high):
                return self._compare(">=", operand, low) & self._compare("<=", operand, high)
            case In(operand=operand, values=values):
                found = self._one_of(operand, values)
                return self.condition(condition.left) | self.condition(condition.right) if found is None else found
            case And(left, right):
                return self.condition(left) & self.condition(right)
            case Or(left, right):
                return self.condition(left) | self.condition(right)
            case Not(operand):
                return ~self.condition(operand)
            case IsNull((Arithmetic() | Negate() | Absolute()) as computed):
                # Compare it with itself, because no Arrow type may hold its values.
                known = self._compare("=", computed, computed).known
                return Truth(np.zeros(self._rows, dtype=bool) if known is None else ~known)
            case IsNull(operand):
                missing = pc.is_null(decoded(self.result(operand)), nan_is_null=True)
                return Truth(bools(missing))
            case Distinct(left, right):
                absent = self.condition(IsNull(left)).true & self.condition(IsNull(right)).true
                return Truth(~(self._compare("=", left, right).true | absent))
            case IsTruth(operand, value):
                truth = self.condition(operand)
                return Truth(truth.true if value else truth.false())
            case Constant(value):
                return self._unknown() if value is None else Truth(np.full(self._rows, bool(value)))
        found = decoded(self.result(condition))
        return self._unknown() if pa.types.is_null(found.type) else truth_of(found)

    def _unknown(self) -> Truth:
        nowhere = np.zeros(self._rows, dtype=bool)
        return Truth(nowhere, nowhere)

    def _function(self, call: Expression) -> pa.Array:
        """The values of a function."""
        kind = self._types.result(call)
        match call:
            case Call():
                return self._call(call, kind)
            case Cast(operand, target):
                return cast(decoded(self.result(operand)), self._types.arguments(call)[0], target)
            case Apply(name, arguments):
                columns = [known(decoded(self.result(argument))) for argument in arguments]
                found = _one_array(BUILTINS[name].compute(columns, self._types.arguments(call), kind))
                return found if found.type == kind else found.cast(kind)
        raise AssertionError(f"{call!r} is not a function")

    def _call(self, call: Call, kind: pa.DataType) -> pa.Array:
        arguments = [self.result(argument) for argument in call.arguments]
        try:
            answer: Any = call.function(*arguments)
        except Exception as error:
            raise PredicateError(f"`{call!r}`: the function raised {type(error).__name__}: {error}") from error
        if isinstance(answer, np.ndarray) and (answer.dtype == np.bool_ or call.returns is not None):
            answer = pa.array(answer)
        expected = "booleans" if call.returns is None else str(call.returns)
        fits = isinstance(answer, pa.Array | pa.ChunkedArray)
        if fits and answer.type != kind and call.returns is not None:
            try:
                answer = answer.cast(kind)
            except pa.ArrowException:
                fits = False
        if not fits or answer.type != kind:
            shown = answer.type if isinstance(answer, pa.Array | pa.ChunkedArray) else type(answer).__name__
            hint = "; a function of values says its type: function(f, returns=..)" if call.returns is None else ""
            message = f"`{call!r}`: the function must return an Arrow array of {expected}, not {shown}{hint}"
            raise PredicateError(message)
        if len(answer) != self._rows:
            noun = "boolean" if call.returns is None else "value"
            raise PredicateError(
                f"`{call!r}`: the function must return one {noun} per row; it got {self._rows} rows "
                f"and returned {len(answer)}"
            )
        return _one_array(answer)

    def _compare(self, sign: ComparisonOperator, left: Expression, right: Expression) -> Truth:
        left, right = self._types.operands(left, right)
        if self._types.is_null(left) or self._types.is_null(right):
            return self._unknown()
        decimals = self._types.has_decimals(left, right)
        if (fast := self._in_arrow(sign, left, right)) is not None:
            return fast
        one, other = self._value(left, decimals), self._value(right, decimals)
        if isinstance(one, ExactColumn) and isinstance(other, ExactColumn):
            found = one.compare(sign, other)
        elif isinstance(one, ExactColumn):
            assert isinstance(other, _Floats)
            found = one.compare_with_floats(sign, other.values)
        elif isinstance(other, ExactColumn):
            found = other.compare_with_floats(mirrored(sign), one.values)
        else:
            found = COMPARE[sign](one.values, other.values)
        known = both(one.valid, other.valid)
        for floats in (one, other):
            if isinstance(floats, _Floats):
                missing = np.isnan(floats.values)
                if missing.any():
                    known = both(known, np.broadcast_to(~missing, self._rows))
        true = np.broadcast_to(np.asarray(found, dtype=bool), self._rows)
        return Truth(true if known is None else true & known, known)

    def _in_arrow(self, sign: ComparisonOperator, left: Expression, right: Expression) -> Truth | None:
        """Compare text, composed values and plain decimals of one scale with Arrow; None for other operands."""
        plain = (Column, Constant, Apply, Cast, Call)
        if not (isinstance(left, plain) and isinstance(right, plain)):
            return None
        families = {self._types.family(each) for each in (left, right)}
        if not families <= {*TEXTS, *COMPOSED}:
            columns = isinstance(left, Column) and isinstance(right, Column)
            if not columns or families != {"decimal"}:
                return None
        one, other = (self._arrow_operand(each) for each in (left, right))
        if families == {"decimal"} and (one.type.scale != other.type.scale or one.type.scale < 0):
            return None
        if isinstance(one, pa.Scalar) and isinstance(other, pa.Scalar):
            one = pa.repeat(one, self._rows)
        return truth_of(_ARROW_COMPARE[sign](one, other))

    def _one_of(self, operand: Expression, values: tuple[Expression, ...]) -> Truth | None:
        """Look a column up in a list of strings, bytes or integers at once; None for other lists."""
        listed: list[Any] = [value.value for value in values if isinstance(value, Constant)]
        kinds = {type(value) for value in listed}
        if not isinstance(operand, Column) or len(listed) < len(values) or kinds not in ({str}, {bytes}, {int}):
            return None
        if kinds != {int} and self._types.family(operand) not in TEXTS:
            return None
        known = validity(decoded(self._arrays[column_name(operand)]))
        if kinds == {int}:
            numbers = self._value(operand, decimals=False)
            if not isinstance(numbers, ExactColumn) or numbers.unit != 1 or not isinstance(numbers.numbers, np.ndarray):
                return None
            ends = np.iinfo(numbers.numbers.dtype)
            within = np.array([value for value in listed if ends.min <= value <= ends.max], numbers.numbers.dtype)
            found: np.ndarray = np.isin(numbers.numbers, within)
        else:
            column = self._arrow_operand(operand)
            found = bools(pc.is_in(column, value_set=pa.array(listed).cast(column.type)))
        return Truth(found if known is None else found & known, known)

    def _arrow_operand(self, operand: Expression) -> pa.Array | pa.Scalar:
        if isinstance(operand, Constant):
            return pa.scalar(operand.value)
        array = decoded(self.result(operand))
        kind = array.type
        if self._types.family(operand) in COMPOSED:
            return encoded(array)
        if pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
            return array.cast(pa.binary())
        return array.cast(pa.string()) if pa.types.is_string_view(kind) else array

    def _value(self, operand: Expression, decimals: bool) -> _Value:
        if self._types.is_float(operand, decimals):
            return self._floats(operand)
        return self._exact(operand)

    def _exact(self, term: Expression) -> ExactColumn:
        match term:
            case Column() | Apply() | Cast() | Call():
                return self._exact_column(term)
            case Constant(value):
                assert value is not None, "a null that is written is unknown"
                return ExactColumn(*exact_constant(value))
            case Negate(operand):
                return -self._exact(operand)
            case Absolute(operand):
                return abs(self._exact(operand))
            case Arithmetic("/", left, right):
                divisor = constant_fraction(right)
                assert divisor, "the types have been checked"
                return self._exact(left).divided_by(divisor)
            case Arithmetic(operator, left, right):
                one, other = self._exact(left), self._exact(right)
                if self._types.counts_days(term):
                    one, other = (ExactColumn(e.numbers, _DAY, e.valid) if e.unit == 1 else e for e in (one, other))
                return one + other if operator == "+" else one - other if operator == "-" else one * other
        truth = self.condition(term)
        return ExactColumn(truth.true.astype(np.int64), Fraction(1), truth.known)

    def _exact_column(self, leaf: Expression) -> ExactColumn:
        array = decoded(self.result(leaf))
        kind = self._types.column(leaf)
        if kind.family == "decimal":
            numbers = decimal_numbers(array)
        else:
            numbers = stored_values(array)
            if numbers.dtype != np.uint64:
                numbers = numbers.astype(np.int64, copy=False)
        return ExactColumn(numbers, kind.unit, validity(array))

    def _floats(self, term: Expression) -> _Floats:
        with np.errstate(all="ignore"):
            return self._floats_of(term)

    def _floats_of(self, term: Expression) -> _Floats:
        if isinstance(term, Constant) or (id(term) in self._constants and not isinstance(term, Apply | Cast | Call)):
            return _Floats(float_constant(term))
        match term:
            case Column() | Apply() | Cast() | Call() if self._types.column(term).is_float:
                array = decoded(self.result(term))
                return _Floats(stored_values(array).astype(np.float64, copy=False), validity(array))
            case Negate(operand):
                inner = self._floats_of(operand)
                return _Floats(-inner.values, inner.valid)
            case Absolute(operand):
                inner = self._floats_of(operand)
                return _Floats(np.abs(inner.values), inner.valid)
            case Arithmetic(operator, left, right):
                one, other = self._floats_of(left), self._floats_of(right)
                return _Floats(_FLOAT_ARITHMETIC[operator](one.values, other.values), both(one.valid, other.valid))
        exact = self._exact(term)
        return _Floats(exact.to_floats(), exact.valid)

    def _to_arrow(self, value: _Value, kind: pa.DataType, expression: Expression) -> pa.Array:
        mask = None if value.valid is None else ~value.valid
        if isinstance(value, _Floats):
            return pa.array(np.broadcast_to(value.values, self._rows), mask=mask)
        unit = Fraction(1)
        if pa.types.is_decimal(kind):
            unit = 1 / Fraction(10) ** kind.scale
        elif pa.types.is_date32(kind):
            unit = _DAY
        elif pa.types.is_temporal(kind):
            unit = Fraction(dict(TICKS)[kind.unit])
        numbers = value.in_units(unit)
        if isinstance(numbers, int):
            numbers = np.full(self._rows, numbers, object)
        if numbers.dtype != np.int64 or pa.types.is_date32(kind):
            numbers = self._checked(numbers, value.valid, kind, expression)
        if pa.types.is_decimal(kind):
            return decimal_array(numbers, value.valid, kind)
        return pa.array(numbers, mask=mask).view(kind)

    def _checked(
        self, numbers: np.ndarray, valid: np.ndarray | None, kind: pa.DataType, expression: Expression
    ) -> np.ndarray:
        """The numbers, those under a null as 0; raises PredicateError if one does not fit the type."""
        if valid is not None:
            numbers = np.where(valid, numbers, 0)
        decimal = pa.types.is_decimal(kind)
        low, high = (1 - 10**kind.precision, 10**kind.precision - 1) if decimal else (INT64_MIN, INT64_MAX)
        if pa.types.is_date32(kind):
            low, high = -(2**31), 2**31 - 1
        if len(numbers) and not (low <= numbers.min() and numbers.max() <= high):
            remedy = 'cast a column of it to "float64"'
            if pa.types.is_integer(kind):
                remedy += ' or "decimal128(38, 0)"'
            elif pa.types.is_date32(kind):
                remedy = "add INTERVAL '1' DAY instead of 1, which gives a timestamp"
            raise PredicateError(f"`{expression!r}` has a value beyond what {kind} holds; {remedy}")
        return numbers if decimal else numbers.astype(np.int32 if pa.types.is_date32(kind) else np.int64)
