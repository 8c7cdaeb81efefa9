from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from operators.query.condition import columns_in, normalise
from operators.query.constants import WrittenFloat, written_number
from operators.query.errors import PredicateError
from operators.query.expressions import Call, Expression, Or
from operators.query.functions import function
from operators.query.predicate import Chain, Combined, Comparison, Dimension, Operation
from operators.query.streams import col, stream

R, S = stream("R"), stream("S")


@function
def near(one: pa.Array, other: pa.Array, distance: pa.Array) -> pa.Array:
    return pc.less_equal(pc.abs(pc.subtract(one, other)), distance)


def beyond(one: pa.Array, other: pa.Array) -> pa.Array:
    return pc.greater(one, other)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (R.power < S.power, "R.power < S.power"),
        ((R.power < S.power) & (R.cool > S.cool), "R.power < S.power AND R.cool > S.cool"),
        (R["max power"] >= col("S.power"), 'R."max power" >= S.power'),
        (2 * R.a + 3 == S.b - 1, "2 * R.a + 3 = S.b - 1"),
        (2 * (R.a + 3) != -S.b, "2 * (R.a + 3) != -S.b"),
        (R.a - (S.b - 1) < 2, "R.a - (S.b - 1) < 2"),
        (-(R.a + 1) < S.b / 2.5, "-(R.a + 1) < S.b / 2.5"),
        (R.a - -3 < S.b, "R.a - -3 < S.b"),
        (R.a * -3 < S.b, "R.a * (-3) < S.b"),
        (abs(R.x - S.x) <= 10, "abs(R.x - S.x) <= 10"),
        (R.x.between(S.x - 1, S.x + 1), "R.x BETWEEN S.x - 1 AND S.x + 1"),
        (abs(R.t - S.t) <= timedelta(minutes=5), "abs(R.t - S.t) <= INTERVAL '5' MINUTE"),
        (R.t <= S.t + timedelta(seconds=90), "R.t <= S.t + INTERVAL '90' SECOND"),
        (~(R.a == S.a), "NOT (R.a = S.a)"),
        ((R.a < S.a) | (R.b < S.b) & (R.c < S.c), "R.a < S.a OR R.b < S.b AND R.c < S.c"),
        (((R.a < S.a) | (R.b < S.b)) & (R.c < S.c), "(R.a < S.a OR R.b < S.b) AND R.c < S.c"),
        (10 >= abs(R.x - S.x), "abs(R.x - S.x) <= 10"),  # noqa: SIM300
        (np.float64(2.5) * R.a < np.int32(3) + S.b, "2.5 * R.a < 3 + S.b"),
        (np.float32(0.5) < R.a - S.b, "R.a - S.b > 0.5"),
        (R.a == "it's", "R.a = 'it''s'"),
        (R.a == b"\x00\xff", "R.a = X'00FF'"),
        (R.a == True, "R.a = TRUE"),  # noqa: E712
        (R.a != np.bool_(False), "R.a != FALSE"),
        (R.a < Decimal("1.50"), "R.a < 1.50"),
        (R.a < Decimal("-1.5") * S.b, "R.a < -1.5 * S.b"),
        (R.d >= date(2024, 2, 29), "R.d >= DATE '2024-02-29'"),
        (R.t >= datetime(2024, 2, 29, 8), "R.t >= TIMESTAMP '2024-02-29 08:00:00'"),
        (R.t > datetime(2024, 2, 29, 8, 0, 0, 5, UTC), "R.t > TIMESTAMP '2024-02-29 08:00:00.000005+00:00'"),
        (R.t < time(8, 30), "R.t < TIME '08:30:00'"),
        (R.t < np.datetime64("2024-02-29"), "R.t < DATE '2024-02-29'"),
        (R.t < np.datetime64("2024-02-29T08:00", "ns"), "R.t < TIMESTAMP '2024-02-29 08:00:00'"),
        (R.t - S.t < np.timedelta64(90, "m"), "R.t - S.t < INTERVAL '90' MINUTE"),
        (R.a.isin(1, 2, 3) & (R.b < S.b), "R.a IN (1, 2, 3) AND R.b < S.b"),
        (~(R.a + 1).isin(["x", "y"]), "NOT (R.a + 1 IN ('x', 'y'))"),
        (R.a.isin({3, 2}), "R.a IN (2, 3)"),
        (R.a.isin([S.b]), "R.a = S.b"),
        (R.a.is_null() | S.b.is_not_null() & (R.a < 3), "R.a IS NULL OR S.b IS NOT NULL AND R.a < 3"),
        (~(R.a + S.b).is_null(), "R.a + S.b IS NOT NULL"),
        (~~R.a.is_null(), "NOT (R.a IS NOT NULL)"),
        (near(R.x, S.x, 0.5) & (R.a < S.a), "near(R.x, S.x, 0.5) AND R.a < S.a"),
        (~near(R.x, S.x, 0.5), "NOT near(R.x, S.x, 0.5)"),
        ((R.price * 2).alias("double"), "R.price * 2 AS double"),
        (near(R.x, S.x, 1).alias("is near"), 'near(R.x, S.x, 1) AS "is near"'),
    ],
)
def test_an_expression_reads_like_the_query(expression: Expression, text: str) -> None:
    assert repr(expression) == text
    assert repr(pickle.loads(pickle.dumps(expression))) == text
    assert repr(copy.deepcopy(expression)) == text


def test_streams_and_columns_survive_pickling_and_odd_names() -> None:
    again = pickle.loads(pickle.dumps(R))
    assert again == R
    assert repr(again.name) == "R.name"
    assert repr(R["_id"]) == "R._id"
    with pytest.raises(AttributeError, match=r"stream\['_id'\]"):
        _ = R._id
    assert repr(col("R.a.b")) == 'R."a.b"'


def test_a_function_called_with_columns_is_a_condition_and_with_arrays_is_itself() -> None:
    call = near(R.x, 2, 0.5)
    assert isinstance(call, Call)
    arrays = (pa.array([1.0, 2.0]), pa.array([2.0, 2.0]), pa.array([0.5, 0.5]))
    assert call.function(*arrays).to_pylist() == near(*arrays).to_pylist() == [False, True]
    assert pickle.loads(pickle.dumps(near)) is near
    further = pickle.loads(pickle.dumps(function(beyond, "further")))
    assert repr(further(R.x, S.x)) == "further(R.x, S.x)"
    assert repr(function(further)(R.x, S.x)) == "further(R.x, S.x)"


def test_a_function_may_be_defined_anywhere() -> None:
    def inner(one: pa.Array) -> pa.Array:
        return one

    assert repr(function(inner)(R.x)) == "inner(R.x)"
    assert repr(function(lambda one: one)(R.x)) == "lambda(R.x)"
    assert repr(function(lambda one: one, "same")(R.x)) == "same(R.x)"
    with pytest.raises(PredicateError, match="takes a Python function over Arrow arrays, not 17"):
        function(17)  # type: ignore[call-overload]


def test_isin_is_an_or_of_equalities_however_many_values() -> None:
    condition = R.a.isin(list(range(5_000)))
    assert isinstance(condition, Or)
    leaves: list[str] = []
    waiting: list[Expression] = [condition]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Or):
            waiting += [node.right, node.left]
        else:
            leaves.append(repr(node))
    assert leaves == [f"R.a = {i}" for i in range(5_000)]
    with pytest.raises(PredicateError, match=r"`R.a IN \(\)` lists no value"):
        R.a.isin()


def test_the_columns_of_an_expression_come_in_the_order_written() -> None:
    expression = near(R.x, S.y, 1) & R.a.isin(S.b, 2) & ~R.c.between(R.x, S.y + 1) | R.d.is_null()
    found = dict.fromkeys(repr(column) for column in columns_in(expression))
    assert list(found) == ["R.x", "S.y", "R.a", "S.b", "R.c", "R.d"]


def test_a_number_keeps_the_digits_that_were_written() -> None:
    for text in ("0.1", "1e-3", "12345678901234567890.5", "3.14159265358979323846"):
        number = written_number(text)
        assert isinstance(number, float)
        assert number == float(text)
        assert Decimal(repr(number)) == Decimal(text)
        assert Decimal(repr(-number)) == -Decimal(text)
        assert repr(pickle.loads(pickle.dumps(number))) == repr(number)
    assert written_number("12345678901234567890") == 12345678901234567890
    assert not isinstance(written_number("0.5"), WrittenFloat)
    with pytest.raises(PredicateError, match="too large"):
        written_number("1e999")


@pytest.mark.parametrize(
    "use",
    [
        lambda: bool(R.a < S.a),
        lambda: (R.a < S.a) and (R.b < S.b),
        lambda: R.a < S.a < R.b,
        lambda: not R.a,
        lambda: R.a in [S.a, S.b],
    ],
)
def test_truth_of_an_expression_is_refused_and_says_what_to_write(use: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="combine conditions with `&`"):
        use()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "never true; write column.is_null\\(\\)"),
        (float("nan"), "finite"),
        (np.float64("inf"), "finite"),
        (Decimal("NaN"), "finite"),
        (np.array([1.0]), "\\(ndarray\\) cannot be used in a join condition: write a number, a Decimal"),
        ([1, 2], "\\(list\\) cannot be used"),
        (1j, "\\(complex\\) cannot be used"),
        (time(10, tzinfo=UTC), "has a time zone"),
        (np.datetime64("NaT"), "write column.is_null"),
        (np.timedelta64(1, "ns"), "finer than a microsecond"),
        (np.timedelta64(1, "M"), "not a length of time of fixed length"),
    ],
)
def test_constants_of_other_kinds_are_refused(value: Any, message: str) -> None:
    with pytest.raises(PredicateError, match=message):
        _ = R.a < value


@pytest.mark.parametrize("name", ["R.", ".a"])
def test_a_column_needs_its_name(name: str) -> None:
    with pytest.raises(PredicateError, match=r"col\('stream.column'\)"):
        col(name)
    with pytest.raises(TypeError, match="non-empty string"):
        stream("")
    with pytest.raises(TypeError, match="non-empty string"):
        R[""]


def dimensions(condition: Expression) -> tuple[Dimension, ...]:
    found = normalise(condition, "R", "S")
    assert pickle.loads(pickle.dumps(found)) == found
    (branch,) = found.branches
    return branch.dimensions


def test_either_order_of_the_streams_is_the_same_comparison() -> None:
    (one,), (other,) = dimensions(R.a < S.b), dimensions(S.b > R.a)
    assert (one.left, one.right) == (other.left, other.right) == ("a", "b")
    assert one.comparisons == (Comparison("<", Chain(0, "a"), Chain(1, "b"), "R.a < S.b"),)
    assert other.comparisons == (Comparison("<", Chain(0, "a"), Chain(1, "b"), "S.b > R.a"),)


def test_comparisons_of_one_pair_of_columns_form_one_dimension() -> None:
    found = dimensions(
        (R.a < S.b) & (R.c >= S.c) & (S.b < R.a + 10) & (abs(R.a - S.b) <= 3)
        & R.a.between(S.b, 2 * S.b) & (R.a != S.b) & (R.a != S.b + 1)
    )  # fmt: skip
    shape = [(d.left, d.right, len(d.comparisons), d.negated) for d in found]
    assert shape == [("a", "b", 6, False), ("c", "c", 1, False), ("a", "b", 1, True),
                     ("a", "b", 1, True)]  # fmt: skip


def test_bands_are_two_comparisons_as_written() -> None:
    for condition in (abs(R.x - S.x) <= 10, 10 >= abs(R.x - S.x)):  # noqa: SIM300
        (dimension,) = dimensions(condition)
        subject = Combined("-", Chain(0, "x"), Chain(1, "x"))
        signs = [(c.operator, c.subject, c.object) for c in dimension.comparisons]
        assert signs == [("<=", subject, 10), (">=", subject, -10)]


def test_the_order_of_operations_is_kept() -> None:
    (dimension,) = dimensions(0.2 + (0.1 + R.a) < 3 - 2 * S.a)
    (comparison,) = dimension.comparisons
    assert comparison.subject == Chain(0, "a", (Operation("+", 0.1), Operation("+", 0.2)))
    assert comparison.object == Chain(1, "a", (Operation("*", 2), Operation("from", 3)))


def test_not_turns_a_comparison_around() -> None:
    assert dimensions(~(R.a < S.a))[0].comparisons[0].operator == ">="
    assert dimensions(~(R.a == S.a))[0].negated
    assert dimensions(~~(R.a <= S.a))[0].comparisons[0].operator == "<="
    assert str(normalise((R.a < S.a) & (R.b > S.b), "R", "S")) == "R.a < S.a AND R.b > S.b"


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (0 * R.a < S.a, "its column has no effect"),
        (R.a / 0 < S.a, "divides by zero"),
        (R.a * timedelta(1) < S.a, "multiplies a column by a length of time"),
        (R.a < stream("T").a, "there is no stream 'T' in this join; its sides are 'R' and 'S'"),
        ((R.a < S.a) | (R.a < stream("T").a), "there is no stream 'T'"),
        (near(R.a, stream("T").a, 1), "there is no stream 'T'"),
        (col("a") < S.a, "`a` does not say which stream it belongs to: write R.a or S.a"),
        (R.a + 1, "`R.a \\+ 1` is not a condition: write a comparison such as R.a < S.b"),
        ((R.a < S.a) & (R.b + 1), "`R.b \\+ 1` is not a condition"),
        ((R.a < S.a) < 3, "is a condition where a value is expected"),
        (R.a.alias("x") < S.a, "an alias belongs in the select list"),
        ("R.a < S.a", "is not a condition"),
    ],
)
def test_what_a_join_cannot_run_is_refused_by_name(condition: Any, message: str) -> None:
    with pytest.raises(PredicateError, match=message):
        normalise(condition, "R", "S")


def test_the_two_roles_need_different_names() -> None:
    with pytest.raises(PredicateError, match="such as R1 and R2"):
        normalise(R.a < R.b, "R", "R")
