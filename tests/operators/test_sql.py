from __future__ import annotations

import pickle
import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.errors import PredicateError, QueryError
from operators.expressions import Compare, Expression, stream
from operators.sql import SelectItem, parse_condition, parse_query
from operators.sql_window import WindowClause

R, S = stream("R"), stream("S")

Q1 = (
    "SELECT R.POW_ID, R.COOL_ID, S.POW_ID, S.COOL_ID FROM R, S WHERE R.POWER < S.POWER "
    "AND R.COOL > S.COOL WINDOW AS (SLIDE INTERVAL '10' ON '60')"
)
Q2 = (
    "SELECT tripId, time FROM taxi_trips WHERE ABS(start_LON1 - start_LON2) < 0.03 AND "
    "ABS(start_LAT1 - start_LAT2) < 0.03 WINDOW AS (SLIDE INTERVAL 'D' ON 'W')"
)
Q3 = (
    "SELECT trip.ID FROM NYC WHERE NYC.trip_dist1 > NYC.trip_dist2 AND "
    "NYC.trip_fare1 < NYC.trip_fare2 WINDOW AS ( SLIDE INTERVAL 'D' ON 'W');"
)


def test_the_first_query_of_the_paper() -> None:
    query = parse_query(Q1)
    assert (query.left, query.right) == (query.left_stream, query.right_stream) == ("R", "S")
    assert repr(query.condition) == "R.POWER < S.POWER AND R.COOL > S.COOL"
    assert query.select == (
        SelectItem("R", "POW_ID"), SelectItem("R", "COOL_ID"),
        SelectItem("S", "POW_ID"), SelectItem("S", "COOL_ID"),
    )  # fmt: skip
    assert query.window == WindowClause("time", 60, 10)
    assert pickle.loads(pickle.dumps(query)).select == query.select


def test_the_second_query_of_the_paper() -> None:
    query = parse_query(Q2, parameters={"D": timedelta(days=1), "W": timedelta(days=7)})
    assert (query.left, query.right) == ("taxi_trips1", "taxi_trips2")
    assert (query.left_stream, query.right_stream) == ("taxi_trips", "taxi_trips")
    assert repr(query.condition) == (
        "abs(taxi_trips1.start_LON - taxi_trips2.start_LON) < 0.03 AND "
        "abs(taxi_trips1.start_LAT - taxi_trips2.start_LAT) < 0.03"
    )
    assert query.select == (
        SelectItem("taxi_trips1", "tripId"), SelectItem("taxi_trips2", "tripId"),
        SelectItem("taxi_trips1", "time"), SelectItem("taxi_trips2", "time"),
    )  # fmt: skip
    assert query.window == WindowClause("time", timedelta(days=7), timedelta(days=1))


def test_the_third_query_of_the_paper() -> None:
    query = parse_query(Q3, parameters={"D": 86_400, "W": 604_800})
    assert repr(query.condition) == (
        "NYC1.trip_dist > NYC2.trip_dist AND NYC1.trip_fare < NYC2.trip_fare"
    )
    assert query.select == (
        SelectItem("NYC1", "ID", "trip.ID"), SelectItem("NYC2", "ID", "trip.ID")
    )  # fmt: skip
    assert query.window == WindowClause("time", 604_800, 86_400)


@pytest.mark.parametrize(
    ("source", "roles", "streams"),
    [
        ("trips AS a, trips AS b WHERE a.x < b.x", ("a", "b"), ("trips", "trips")),
        ("trips a JOIN trips b ON a.x < b.x", ("a", "b"), ("trips", "trips")),
        ("a INNER JOIN b ON a.x < b.x", ("a", "b"), ("a", "b")),
        ("a CROSS JOIN b WHERE (a.x < b.x)", ("a", "b"), ("a", "b")),
        ("db.trips AS a, `my trips` AS b WHERE A.x < B.x", ("a", "b"), ("db.trips", "my trips")),
        ('"a", "b" where "a"."x" < `b`.`x` -- as quoted', ("a", "b"), ("a", "b")),
    ],
)
def test_streams_and_roles(source: str, roles: Any, streams: Any) -> None:
    query = parse_query(f"SELECT * FROM {source}")
    assert (query.left, query.right) == roles
    assert (query.left_stream, query.right_stream) == streams
    assert repr(query.condition) == "a.x < b.x"
    assert query.select is None
    assert query.window is None


def test_select_items() -> None:
    query = parse_query('SELECT a."Id", b.*, b.Id AS other FROM t a, t b WHERE a.x < b.x')
    assert query.select == (
        SelectItem("a", "Id"), SelectItem("b", "*"), SelectItem("b", "Id", name="other")
    )  # fmt: skip
    query = parse_query("SELECT t.id, t2.id AS other FROM t WHERE t1.x < t2.x")
    assert query.select == (
        SelectItem("t1", "id"), SelectItem("t2", "id"), SelectItem("t2", "id", name="other")
    )  # fmt: skip


def test_join_and_where_conditions_are_one_conjunction() -> None:
    query = parse_query("SELECT * FROM R JOIN S ON R.a < S.b WHERE R.c = S.c AND R.d > S.d")
    assert repr(query.condition) == "R.a < S.b AND (R.c = S.c AND R.d > S.d)"


@pytest.mark.parametrize(
    ("clause", "window"),
    [
        ("SLIDE INTERVAL '10' ON '60'", WindowClause("time", 60, 10)),
        ("slide interval '0.5' on '1.5'", WindowClause("time", 1.5, 0.5)),
        ("SLIDE INTERVAL '10' MINUTE ON '1' HOUR",
         WindowClause("time", timedelta(hours=1), timedelta(minutes=10))),
        ("SLIDE INTERVAL '10' SECONDS ON INTERVAL '0.5' DAY",
         WindowClause("time", timedelta(hours=12), timedelta(seconds=10))),
        ("SLIDE INTERVAL 'W' MINUTE ON '60' MINUTE",
         WindowClause("time", timedelta(hours=1), timedelta(minutes=7))),
        ("SLIDE ROWS 10 ON 60", WindowClause("rows", 60, 10)),
        ("SLIDE ROWS '10' ON ROWS W", WindowClause("rows", 7, 10)),
        ("INTERVAL '60'", WindowClause("time", 60)),
        ("INTERVAL '60' MINUTE", WindowClause("time", timedelta(hours=1))),
        ("ROWS 60", WindowClause("rows", 60)),
    ],
)  # fmt: skip
def test_windows(clause: str, window: WindowClause) -> None:
    parameters = {"W": 7} if re.search(r"\bW\b", clause) else {}
    text = f"SELECT * FROM R, S WHERE R.a < S.b\nWINDOW AS ({clause})\n;"
    assert parse_query(text, parameters).window == window


def at(message: str, caret_under: str, text: str, parameters: Any = None) -> Any:
    return pytest.param(message, caret_under, text, parameters, id=message[:40])


FROM = "SELECT * FROM R, S WHERE R.a < S.b "


@pytest.mark.parametrize(
    ("message", "caret_under", "text", "parameters"),
    [
        at('pass parameters={"D": ..}', "D' ON", Q2),
        at("window uses no parameter 'X'", "", Q1, {"X": 1}),
        at("parameter 'D' is True", "D'", Q2, {"D": True, "W": 1}),
        at("give both a unit, or neither", ")", Q2, {"D": 1, "W": timedelta(1)}),
        at("are positive, not 0", "0'", FROM + "WINDOW AS (INTERVAL '0')"),
        at("ROWS takes a whole number, not 1.5", "1.5", FROM + "WINDOW AS (ROWS 1.5)"),
        at("MONTH is not a unit of fixed length", "MONTH", FROM + "WINDOW AS (INTERVAL '1' MONTH)"),
        at("W has a unit already: drop DAY", "DAY", FROM + "WINDOW AS (INTERVAL 'W' DAY)",
           {"W": timedelta(1)}),
        at("SLIDE needs the window's size after ON", ")", FROM + "WINDOW AS (SLIDE ROWS 3)"),
        at("a window is an INTERVAL or ROWS", "RANGE", FROM + "WINDOW AS (RANGE 3)"),
        at("unexpected '5'", "5)", FROM + "WINDOW AS (ROWS 3 5)"),
        at("never closed", "(ROWS", FROM + "WINDOW AS (ROWS 3"),
        at("comes last in a query", "ORDER", FROM + "WINDOW AS (ROWS 3) ORDER BY R.a"),
        at("one WINDOW clause", "WINDOW AS (ROWS 3) W",
           FROM + "WINDOW AS (ROWS 3) WINDOW AS (ROWS 3)"),
        at("a number is missing", ")", FROM + "WINDOW AS (ROWS)"),
        at("'1:30' is neither a number nor a parameter", "1:30", FROM + "WINDOW AS (INTERVAL '1:30')"),
        at("OR is not supported yet", "R.x", FROM + "AND (R.x < S.x OR R.y < S.y)"),
        at("`R.x = 3` concerns R alone", "R.x", FROM + "\n  AND R.x = 3"),
        at("column x does not say which stream", "x <", FROM + "AND x < R.a"),
        at("there is no stream T in this join", "T.x", FROM + "AND T.x < R.a"),
        at("the string 'x' cannot be compared yet", "'x'", FROM + "AND R.x < 'x'"),
        at("`CAST(R.x AS INT)` is not supported", "R.x AS", FROM + "AND CAST(R.x AS INT) < S.x"),
        at("`R.x IS NULL` is not supported", "R.x", FROM + "AND R.x IS NULL"),
        at("`SQRT(R.x)` is not supported", "sqrt", FROM + "AND sqrt(R.x) < S.x"),
        at("BETWEEN SYMMETRIC", "R.x", FROM + "AND R.x BETWEEN SYMMETRIC S.x AND S.y"),
        at("NOT may stand before a single", "R.x", FROM + "AND R.x NOT BETWEEN S.x AND S.x + 1"),
        at("`R.x << S.x` is not supported", "R.x", FROM + "AND R.x < < S.x"),
        at("MONTH is not a unit", "'1' MONTH", FROM + "AND R.t - S.t < INTERVAL '1' MONTH"),
        at("write INTERVAL '5' MINUTE", "'5'", FROM + "AND R.t - S.t < INTERVAL '5'"),
        at("is too large for a float", "1e999", FROM + "AND R.t - S.t < 1e999"),
        at("GROUP is not supported", "R.a", "SELECT * FROM R, S GROUP BY R.a"),
        at("WITH is not supported", "q", "WITH q AS (SELECT 1) " + FROM),
        at("DISTINCT is not supported", "", "SELECT DISTINCT R.a FROM R, S WHERE R.a < S.b"),
        at("LIMIT is not supported", "3", FROM + "LIMIT 3"),
        at("LEFT JOIN is not read", "S ON", "SELECT * FROM R LEFT JOIN S ON R.a < S.b"),
        at("USING is not read", "S USING", "SELECT * FROM R JOIN S USING (a)"),
        at("SEMI JOIN is not supported", "S ON", "SELECT * FROM R SEMI JOIN S ON R.a < S.b"),
        at("a join takes two streams, not 3", "*", "SELECT * FROM R, S, T WHERE R.a < S.b"),
        at("both streams are called R", "R WHERE", "SELECT * FROM R, R WHERE R.a < R.b"),
        at("needs two roles", "R AS", "SELECT * FROM R AS a WHERE a.x1 < a.x2"),
        at("is not a stream", "1)", "SELECT * FROM (SELECT 1) AS x, S WHERE x.a < S.b"),
        at("takes a name and a role only", "R TABLE",
           "SELECT * FROM R TABLESAMPLE (10 PERCENT), S WHERE R.a < S.b"),
        at("the query has no condition", "*", "SELECT * FROM R, S"),
        at("the query has no FROM", "1", "SELECT 1"),
        at("selects nothing", "", "SELECT FROM R, S WHERE R.a < S.b"),
        at("something is missing in WHERE", "E", "SELECT * FROM R, S WHERE"),
        at("Expecting )", "b", "SELECT * FROM R, S WHERE (R.a < S.b"),
        at("cannot be read", "", "SELECT * FROM R, S WHERE R.a < 'b"),
        at("a query starts with SELECT", "*", "SELECT * FROM R UNION SELECT 1"),
        at("and one only", "", "SELECT * FROM t WHERE x1 < x2; DROP TABLE t"),
        at("and one only", "", "  "),
        at("x does not say which row of the pair", "x WINDOW", "SELECT a FROM t WHERE x1 < x WINDOW AS (ROWS 1)"),
        at("there is no stream u here, only t", "u.x1", "SELECT a FROM t WHERE u.x1 < t.x2"),
        at("id does not say which stream", "id", "SELECT id FROM R, S WHERE R.a < S.b"),
        at("there is no stream trip in this join", "trip.id", "SELECT trip.id FROM R, S WHERE R.a < S.b"),
        at("`COUNT(*)` cannot be selected", "count", "SELECT count(*) FROM R, S WHERE R.a < S.b"),
        at("cannot both be called x", "id", "SELECT id AS x FROM t WHERE a1 < a2"),
    ],
)  # fmt: skip
def test_errors_name_the_piece_and_point_at_it(
    message: str, caret_under: str, text: str, parameters: Any
) -> None:
    with pytest.raises(QueryError) as caught:
        parse_query(text, parameters)
    shown = str(caught.value)
    assert message in shown
    error = pickle.loads(pickle.dumps(caught.value))
    assert (str(error), error.line, error.column) == (shown, caught.value.line, caught.value.column)
    if caret_under:
        _, line, caret = shown.rsplit("\n", 2)
        assert line[caret.index("^") :].startswith(caret_under)
        assert f"line {caught.value.line}, column {caught.value.column}" in shown
        assert line[2:] == text.split("\n")[(caught.value.line or 0) - 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("R.power < S.power AND R.cool > S.cool", (R.power < S.power) & (R.cool > S.cool)),
        ("r.a<>s.b", R.a != S.b),
        ("2 * R.a + 3.0 >= -S.b / 2", 2 * R.a + 3.0 >= -S.b / 2),
        ("R.a BETWEEN S.b - 1 AND S.b + 1", R.a.between(S.b - 1, S.b + 1)),
        ("abs(R.t - S.t) <= INTERVAL '5' MINUTE", abs(R.t - S.t) <= timedelta(minutes=5)),
        ("INTERVAL '1 day' > R.t - S.t", timedelta(1) > R.t - S.t),
        ("R.t <= INTERVAL '90' SECOND + S.t", R.t <= timedelta(seconds=90) + S.t),
        ("NOT R.a = S.b", ~(R.a == S.b)),
        ("R.a < S.b + (-3)", R.a < S.b + -3),
        ("10 >= ABS(R.x - S.x)", abs(R.x - S.x) <= 10),
    ],
)  # fmt: skip
def test_a_condition_equals_its_python_form(text: str, expected: Expression) -> None:
    got, want = parse_condition(text, "R", "S"), expected
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
    if isinstance(got, Compare) and repr(got) != repr(want):
        got = Compare(mirrored[got.operator], got.right, got.left)  # type: ignore[arg-type]
    assert repr(got) == repr(want)


def test_a_condition_alone_may_not_be_a_query() -> None:
    with pytest.raises(PredicateError, match="is not supported in a join condition"):
        parse_condition("SELECT 1", "R", "S")
    with pytest.raises(QueryError, match="one only"):
        parse_condition("", "R", "S")


NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False)
).filter(bool)
LENGTHS = st.timedeltas(min_value=timedelta(0))


@st.composite
def terms(draw: Any, term: Expression) -> Expression:
    times = draw(st.booleans())
    for _ in range(draw(st.integers(0, 3))):
        constant = draw(LENGTHS if times else NUMBERS)
        shapes = [term + constant, constant - term, term - constant]
        if not times:
            shapes += [term * constant, term / constant, -term]
        term = draw(st.sampled_from(shapes))
    return term


@settings(max_examples=200, deadline=None)
@given(terms(R["a b"]), terms(S.from_), st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
def test_what_an_expression_prints_parses_back_to_it(left: Any, right: Any, sign: Any) -> None:
    condition = Compare(sign, left, right) & (abs(R.x - S.x) < 1e-07) & ~(R.y < S.y)
    assert repr(parse_condition(repr(condition), "R", "S")) == repr(condition)
