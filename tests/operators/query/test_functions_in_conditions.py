"""Built-in functions, casts and CASE in conditions: how they print, where they are searched, how Python spells them."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from operators import CountWindow, PredicateError, StreamJoin, UnboundedWindow, case, func, function, stream
from operators.query.condition import normalise
from operators.query.expressions import Expression
from operators.query.predicate import Predicate
from operators.sql.parse import parse_condition
from tests.query_corpus import ALONE, FURTHER, KEYED, RANGES

pytestmark = pytest.mark.filterwarnings("ignore::operators.UnboundedStateWarning")

R, S = stream("R"), stream("S")


def branches(text: str) -> tuple[Predicate, ...]:
    return normalise(parse_condition(text, "R", "S"), "R", "S").branches


@pytest.mark.parametrize("text", [*KEYED, *RANGES, *ALONE, *FURTHER])
def test_a_condition_prints_as_text_that_means_the_same(text: str) -> None:
    read = parse_condition(text, "R", "S")
    assert repr(parse_condition(repr(read), "R", "S")) == repr(read)
    assert repr(pickle.loads(pickle.dumps(read))) == repr(read)


@pytest.mark.parametrize(
    ("python", "text"),
    [
        (func.lower(R.t) == "a", "lower(R.t) = 'a'"),
        (func.coalesce(R.x, 0) < S.x, "coalesce(R.x, 0) < S.x"),
        (R.x % 2 == S.x // 3, "(R.x % 2) = (S.x // 3)"),
        (2 ** R.x > 7 % S.x, "power(2, R.x) > (7 % S.x)"),
        (R.t.like("a%") & ~S.t.ilike("_"), "R.t LIKE 'a%' AND NOT (S.t ILIKE '_')"),
        (R.x.is_distinct_from(S.x), "R.x IS DISTINCT FROM S.x"),
        (R.x.is_not_distinct_from(3), "R.x IS NOT DISTINCT FROM 3"),
        ((R.x < S.x).is_true() | ~(R.x > S.x).is_false(), "(R.x < S.x) IS TRUE OR (R.x > S.x) IS NOT FALSE"),
        (R.x.cast(pa.int64()) == 1, "CAST(R.x AS BIGINT) = 1"),
        (case((R.x > 0, "a"), (R.x < 0, "b")) == "a",
         "CASE WHEN R.x > 0 THEN 'a' WHEN R.x < 0 THEN 'b' ELSE NULL END = 'a'"),
        (R.s["f"] == R.l[1], "R.s['f'] = R.l[1]"),
        (func.nullif(R.x, 1) == 2, "CASE WHEN R.x = 1 THEN NULL ELSE R.x END = 2"),
        (func.bitand(R.x, 1) == 1, "(R.x & 1) = 1"),
    ],
)  # fmt: skip
def test_python_spells_what_sql_spells(python: Expression, text: str) -> None:
    assert repr(python) == text
    assert repr(parse_condition(text, "R", "S")) == text


def test_a_function_of_one_column_is_searched_by_keys() -> None:
    (one,) = branches("lower(R.t) = S.t AND round(R.x) < S.x")
    assert [dimension.is_computed for dimension in one.dimensions] == [True, True]
    assert repr(one.residual) == "lower(R.t) = S.t AND round(R.x) < S.x"


def test_two_functions_of_the_same_columns_are_two_dimensions() -> None:
    (one,) = branches("lower(R.t) = S.t AND upper(R.t) < S.t AND R.t > S.t")
    assert len(one.dimensions) == 3


def test_a_function_of_both_streams_is_tested_on_pairs() -> None:
    (one,) = branches("R.x = S.x AND coalesce(R.y, S.y) = 1")
    assert [str(dimension) for dimension in one.dimensions] == ["R.x = S.x"]
    assert repr(one.residual) == "coalesce(R.y, S.y) = 1"


def test_null_safe_equalities_need_one_search_more_each() -> None:
    text = " AND ".join(f"R.{name} IS NOT DISTINCT FROM S.{name}" for name in "abcd")
    found = branches(text)
    assert len(found) == 5
    assert all(branch.dimensions[0].is_bounded for branch in found[:-1])


def test_a_function_of_ones_own_may_return_values() -> None:
    rows = pa.table({"id": [1, 2], "x": [2.0, 3.0]})
    double = function(lambda x: pc.multiply(x, 2), "double", returns=pa.float64())

    def pairs(on: Any) -> list[tuple[int, ...]]:
        join = StreamJoin("R", "S", on, UnboundedWindow(), select=["R.id", "S.id"])
        return sorted(zip(*join.collect({"R": rows, "S": rows}).to_pydict().values(), strict=True))

    assert pairs(double(R.x) == S.x + 2) == [(1, 1)]
    assert pairs(double(R.x) > S.x + 3) == [(2, 1)]
    with pytest.raises(PredicateError, match="returns double, not a condition: compare it with something"):
        pairs(double(R.x))


def test_a_name_that_is_no_function_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'lowr' is not a built-in function; did you mean lower\?"):
        func.lowr  # noqa: B018
    with pytest.raises(PredicateError, match="lower takes 1 argument, not 2"):
        func.lower(R.t, 1)
    with pytest.raises(TypeError, match="not iterable"):
        list(R.t)  # type: ignore[call-overload]
    assert "lower" in dir(func)


def test_functions_of_a_stream_that_sends_nothing_see_nulls() -> None:
    rows = pa.table({"id": [1, 2], "i": [5, None]})
    shown = [
        R.id,
        func.coalesce(S.i, R.i, 0).alias("first"),
        (S.i + 1).alias("sum"),
        S.i.is_not_distinct_from(R.i).alias("same"),
        case((S.i.is_null(), "none"), default="some").alias("which"),
        R.i.isin(5, S.i).alias("listed"),
    ]
    join = StreamJoin("R", "S", R.i == S.i, CountWindow(1), kind="left", select=shown)
    with join.launch() as running:
        running.open("S", "s")
        running.send("R", rows)
        running.finish()
        (batch,) = running.results()
    assert batch.to_pylist() == [
        {"R.id": 1, "first": 5, "sum": None, "same": False, "which": "none", "listed": True},
        {"R.id": 2, "first": 0, "sum": None, "same": True, "which": "none", "listed": None},
    ]


def test_a_field_of_a_struct_is_selected() -> None:
    rows = pa.table({"id": [1], "s": [{"a": {"b": 7}}]})
    text = "SELECT R.s.a.b, S.s['a'] AS whole FROM R JOIN S ON R.s.a.b = S.s.a.b"
    join = StreamJoin.from_sql(text, window=CountWindow(1))
    assert join.collect({"R": rows, "S": rows}).to_pylist() == [{"R.s['a']['b']": 7, "whole": {"b": 7}}]
