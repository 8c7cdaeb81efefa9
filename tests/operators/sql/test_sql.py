from __future__ import annotations

import pickle
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.query.errors import PredicateError, QueryError
from operators.query.expressions import Call, Compare, Expression, as_expression
from operators.query.functions import function
from operators.query.interval_join import interval_windows
from operators.query.kinds import Kind
from operators.query.select_items import ComputedItem, CountItem, SelectItem
from operators.query.streams import stream
from operators.query.windows import CountWindow, TimeWindow, UnboundedWindow, Window
from operators.sql.parse import parse_condition, parse_query

R, S = stream("R"), stream("S")


@function
def contains(one: pa.Array, other: pa.Array, most: pa.Array) -> pa.Array:
    return pc.less(pc.subtract(one, other), most)


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
    assert query.windows == (TimeWindow(60, 10), TimeWindow(60, 10))
    assert (query.kind, query.where) == (Kind.INNER, None)
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
    assert query.windows == (TimeWindow(timedelta(days=7), timedelta(days=1)),) * 2


def test_the_third_query_of_the_paper() -> None:
    query = parse_query(Q3, parameters={"D": 86_400, "W": 604_800})
    assert repr(query.condition) == ("NYC1.trip_dist > NYC2.trip_dist AND NYC1.trip_fare < NYC2.trip_fare")
    assert query.select == (
        SelectItem("NYC1", "ID", "trip.ID"), SelectItem("NYC2", "ID", "trip.ID")
    )  # fmt: skip
    assert query.windows == (TimeWindow(604_800, 86_400),) * 2


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
    assert query.windows is None


def test_select_items() -> None:
    query = parse_query('SELECT a."Id", b.*, b.Id AS other FROM t a, t b WHERE a.x < b.x')
    assert query.select == (
        SelectItem("a", "Id"), SelectItem("b", "*"), SelectItem("b", "Id", name="other")
    )  # fmt: skip
    query = parse_query("SELECT t.id, t2.id AS other FROM t WHERE t1.x < t2.x")
    assert query.select == (
        SelectItem("t1", "id"), SelectItem("t2", "id"), SelectItem("t2", "id", name="other")
    )  # fmt: skip


def test_computed_items() -> None:
    query = parse_query(
        "SELECT *, R.price * 2 AS double, S.ts - R.ts, abs(R.x - S.x) < 1 AS close FROM R, S WHERE R.x < S.x"
    )
    assert query.select is not None
    assert query.select[:2] == (SelectItem("R", "*"), SelectItem("S", "*"))
    computed = [(repr(item.expression), item.name) for item in query.select if isinstance(item, ComputedItem)]
    assert computed == [
        ("R.price * 2", "double"),
        ("S.ts - R.ts", "S.ts - R.ts"),
        ("abs(R.x - S.x) < 1", "close"),
    ]
    (item,) = parse_query("SELECT abs(x1 - x2) AS d FROM t WHERE x1 < x2").select or ()
    assert isinstance(item, ComputedItem)
    assert repr(item.expression) == "abs(t1.x - t2.x)"


def test_join_and_where_conditions_are_one_conjunction() -> None:
    query = parse_query("SELECT * FROM R JOIN S ON R.a < S.b WHERE R.c = S.c AND (R.d > 3 AND S.d IN (1, 2))")
    assert repr(query.condition) == "R.a < S.b AND R.c = S.c AND R.d > 3 AND S.d IN (1, 2)"
    assert query.where is None


@pytest.mark.parametrize(
    ("join", "kind"),
    [
        ("JOIN", "inner"), ("INNER JOIN", "inner"), ("CROSS JOIN", "inner"), ("LEFT JOIN", "left"),
        ("left outer join", "left"), ("RIGHT JOIN", "right"), ("RIGHT OUTER JOIN", "right"), ("FULL JOIN", "full"),
        ("FULL OUTER JOIN", "full"), ("SEMI JOIN", "semi"), ("LEFT SEMI JOIN", "semi"), ("ANTI JOIN", "anti"),
        ("LEFT ANTI JOIN", "anti"),
    ],
)  # fmt: skip
def test_the_kind_of_join_is_how_it_is_spelled(join: str, kind: str) -> None:
    clause = "WHERE" if join == "CROSS JOIN" else "ON"
    query = parse_query(f"SELECT * FROM R {join} S {clause} R.a < S.a OR R.b IS NULL")
    assert query.kind == kind
    assert repr(query.condition) == "R.a < S.a OR R.b IS NULL"
    assert query.where is None


def test_a_cross_join_needs_no_condition() -> None:
    assert repr(parse_query("SELECT * FROM R CROSS JOIN S").condition) == "TRUE"
    assert repr(parse_query("SELECT * FROM R JOIN S ON TRUE").condition) == "TRUE"


@pytest.mark.parametrize(
    ("kind", "where"),
    [("LEFT", "R.x > 3"), ("RIGHT", "S.x > 3"), ("SEMI", "R.x > 3"), ("ANTI", "R.x IS NULL"),
     ("LEFT", "(R.x > 3 OR R.y = 'a') AND NOT (R.z = 0)")],
)  # fmt: skip
def test_a_where_of_one_stream_says_which_rows_appear(kind: str, where: str) -> None:
    query = parse_query(f"SELECT * FROM R {kind} JOIN S ON R.a < S.a AND S.b = 7 WHERE {where}")
    assert repr(query.condition) == "R.a < S.a AND S.b = 7"
    assert repr(query.where) == where


def test_count_of_all_is_the_number_of_matches_of_each_row() -> None:
    query = parse_query("SELECT R.id, COUNT(*) AS n, S.id FROM R, S WHERE R.a < S.a AND R.x > 3 AND S.x IS NULL")
    assert query.kind == Kind.COUNT
    assert query.select == (SelectItem("R", "id"), CountItem("n"), SelectItem("S", "id"))
    assert repr(query.condition) == "R.a < S.a"
    assert repr(query.where) == "R.x > 3 AND S.x IS NULL"
    query = parse_query("SELECT *, count(*) FROM R JOIN S ON R.a < S.a AND R.x > 3")
    assert query.select == (SelectItem("R", "*"), SelectItem("S", "*"), CountItem("matches"))
    assert repr(query.condition) == "R.a < S.a AND R.x > 3"


MINUTES = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("clause", "window"),
    [
        ("SLIDE INTERVAL '10' ON '60'", TimeWindow(60, 10)),
        ("slide interval '0.5' on '1.5'", TimeWindow(1.5, 0.5)),
        ("SLIDE INTERVAL '10' MINUTE ON '1' HOUR", TimeWindow(60 * MINUTES, 10 * MINUTES)),
        ("SLIDE INTERVAL '10' SECONDS ON INTERVAL '0.5' DAY", TimeWindow(timedelta(hours=12), timedelta(seconds=10))),
        ("SLIDE INTERVAL 'W' MINUTE ON '60' MINUTE", TimeWindow(60 * MINUTES, 7 * MINUTES)),
        ("SLIDE INTERVAL '10 min' ON '1 h 30 min'", TimeWindow(90 * MINUTES, 10 * MINUTES)),
        ("SLIDE ROWS 10 ON 60", CountWindow(60, 10)),
        ("SLIDE ROWS '10' ON ROWS W", CountWindow(7, 10)),
        ("INTERVAL '60'", TimeWindow(60)),
        ("INTERVAL 60 MINUTE", TimeWindow(60 * MINUTES)),
        ("INTERVAL '0'", TimeWindow(0)),
        ("ROWS 60", CountWindow(60)),
        ("TUMBLE ROWS 60", CountWindow.tumbling(60)),
        ("TUMBLE INTERVAL '10' MINUTE", TimeWindow.tumbling(10 * MINUTES)),
        ("tumble interval 'W'", TimeWindow.tumbling(7)),
        ("ROWS 60 PER KEY", CountWindow(60, per_key=True)),
        ("SLIDE ROWS 10 ON 60 PER KEY", CountWindow(60, 10, per_key=True)),
        ("TUMBLE ROWS W per key", CountWindow.tumbling(7, per_key=True)),
        ("UNBOUNDED", UnboundedWindow()),
    ],
)
def test_windows(clause: str, window: Window) -> None:
    parameters = {"W": 7} if re.search(r"\bW\b", clause) else {}
    text = f"SELECT * FROM R, S WHERE R.a < S.b\nWINDOW AS ({clause})\n;"
    assert parse_query(text, parameters).windows == (window, window)


@pytest.mark.parametrize(
    "clause",
    ["WINDOW R AS (ROWS 5), S AS (INTERVAL 'W')", "window s as (interval '10 min') , r as(rows 5)",
     'WINDOW "R" AS (ROWS 5),`S` AS (INTERVAL \'10 min\');'],
)  # fmt: skip
def test_each_side_may_have_its_own_window(clause: str) -> None:
    query = parse_query(f"SELECT * FROM R, S WHERE R.a < S.b {clause}", {"W": "10 min"} if "'W'" in clause else None)
    assert query.windows == (CountWindow(5), TimeWindow(10 * MINUTES))


@pytest.mark.parametrize(
    ("condition", "sizes"),
    [
        ("R.ts BETWEEN S.t - INTERVAL '5' MINUTE AND S.t + INTERVAL '1' MINUTE", (5, 1)),
        ("R.ts >= S.t AND R.ts <= S.t + INTERVAL '5' MINUTE", (0, 5)),
        ("S.t BETWEEN R.ts AND R.ts + INTERVAL '5' MINUTE AND R.a = S.a", (5, 0)),
        ("abs(R.ts - S.t) <= INTERVAL '5' MINUTE", (5, 5)),
        ("INTERVAL '5' MINUTE > abs(S.t - R.ts + INTERVAL '1' MINUTE)", (4, 6)),
        ("S.t - R.ts < INTERVAL '5' MINUTE AND S.t - R.ts > -INTERVAL '2' MINUTE", (5, 2)),
        ("R.ts - INTERVAL '1' MINUTE = S.t", (0, 1)),
        ("R.ts = S.t", (0, 0)),
        ("R.ts BETWEEN S.t + INTERVAL '1' MINUTE AND S.t + INTERVAL '5' MINUTE", (0, 5)),
        ("R.ts >= S.t - INTERVAL '9' MINUTE AND R.ts >= S.t - INTERVAL '3' MINUTE AND R.ts <= S.t", (3, 0)),
        ("R.ts BETWEEN S.t - INTERVAL '5' MINUTE AND S.x", None),
        ("R.ts >= S.t - INTERVAL '5' MINUTE", None),
        ("R.x BETWEEN S.t - INTERVAL '5' MINUTE AND S.t", None),
        ("2 * R.ts BETWEEN S.t AND S.t + INTERVAL '5' MINUTE", None),
        ("abs(R.ts - S.t) > INTERVAL '5' MINUTE", None),
        ("R.ts != S.t", None),
        ("R.ts BETWEEN S.t - INTERVAL '5' MINUTE AND S.t + 3", None),
        ("R.ts BETWEEN S.t - INTERVAL '5' MINUTE AND S.t OR R.a = S.a", None),
    ],
)
def test_windows_follow_from_a_condition_that_bounds_the_difference_of_times(
    condition: str, sizes: tuple[int, int] | None
) -> None:
    found = interval_windows(parse_condition(condition, "R", "S"), ("R", "ts"), ("S", "t"))
    if sizes is None:
        assert found is None
        return
    assert found is not None
    assert [window.in_unit_of(pa.timestamp("s")) for window in found] == [(60 * size, None) for size in sizes]


def test_windows_follow_in_the_unit_of_times_that_are_numbers() -> None:
    for condition in ("R.ts BETWEEN S.ts - 5 AND S.ts + 1.5", "R.ts - S.ts >= -5 AND R.ts - 1.5 <= S.ts"):
        found = interval_windows(parse_condition(condition, "R", "S"), ("R", "ts"), ("S", "ts"))
        assert found == (TimeWindow(5), TimeWindow(1.5))


def at(message: str, caret_under: str, text: str, parameters: Any = None) -> Any:
    return pytest.param(message, caret_under, text, parameters, id=message[:40])


FROM = "SELECT * FROM R, S WHERE R.a < S.b "


@pytest.mark.parametrize(
    ("message", "caret_under", "text", "parameters"),
    [
        at('pass parameters={"D": ..}', "D' ON", Q2),
        at("the WINDOW clause does not use the parameter 'X'", "", Q1, {"X": 1}),
        at("parameter 'D' is True", "D'", Q2, {"D": True, "W": 1}),
        at("give both a unit, or neither", ")", Q2, {"D": 1, "W": timedelta(1)}),
        at("slide must be positive, not 0", "TUMBLE", FROM + "WINDOW AS (TUMBLE INTERVAL '0')"),
        at("size must be a whole number of 1 or more, not 0", "ROWS", FROM + "WINDOW AS (ROWS 0)"),
        at("PER KEY counts rows: write ROWS", ")", FROM + "WINDOW AS (INTERVAL '1 h' PER KEY)"),
        at("unexpected 'PER'", "PER", FROM + "WINDOW AS (ROWS 3 PER)"),
        at("parameter 'W': '10' is not a length of time", "W'", FROM + "WINDOW AS (INTERVAL 'W')", {"W": "10"}),
        at("S has no window: write WINDOW R AS (..), S AS (..)", "R AS", FROM + "WINDOW R AS (ROWS 3)"),
        at("R has a window already", "R AS (ROWS 4", FROM + "WINDOW R AS (ROWS 3), R AS (ROWS 4)"),
        at("'T' names no side of this join", "T AS", FROM + "WINDOW T AS (ROWS 3), R AS (ROWS 4)"),
        at("a window names no side of this join", "AS (ROWS 4", FROM + "WINDOW R AS (ROWS 3), AS (ROWS 4)"),
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
        at("'1:30' is not a length of time", "1:30", FROM + "WINDOW AS (INTERVAL '1:30')"),
        at("there is no stream T", "T.x", FROM + "AND (R.x < S.x OR R.y < 3\n OR NOT T.x < S.x)"),
        at("`R.x + 1` is not a condition", "R.x", FROM + "AND (R.y < S.y OR R.x + 1)"),
        at("column x does not say which stream", "x <", FROM + "AND x < R.a"),
        at("there is no stream T in this join", "T.x", FROM + "AND T.x < R.a"),
        at('write R.x or S.x; a string is written \'x\'', '"x"', FROM + 'AND R.x < "x"'),
        at("IN takes a list of values", "R.x", FROM + "AND R.x IN (SELECT 1)"),
        at("subqueries are not supported", "S.x", "SELECT * FROM R JOIN S ON EXISTS (SELECT S.x)"),
        at("compares 2 values with 1", "R.x", FROM + "AND (R.x, R.y) = (S.x,)"),
        at("sqroot is not a function of this query (it is not built in): write sqrt", "sqroot",
           FROM + "AND sqroot(R.x) < S.x"),
        at("belongs in the SELECT list", "COUNT", FROM + "AND COUNT(*) > 3"),
        at("'2024-13-01' is not a DATE: write DATE '2024-02-29'", "'2024", FROM + "AND R.x < DATE '2024-13-01'"),
        at("is finer than a microsecond", "'2024", FROM + "AND R.x < TIMESTAMP '2024-01-01 00:00:00.1234567'"),
        at("has no time zone: write TIMESTAMPTZ '2024-01-01+00:00'", "'2024",
           FROM + "AND R.x < TIMESTAMPTZ '2024-01-01'"),
        at("'x' is not a DECIMAL: write DECIMAL '0.10'", "'x'", FROM + "AND R.x < DECIMAL 'x'"),
        at("two hexadecimal digits per byte", "X'0'", FROM + "AND R.x < X'0'"),
        at("BETWEEN SYMMETRIC", "R.x", FROM + "AND R.x BETWEEN SYMMETRIC S.x AND S.y"),
        at("has no fixed length: add it to a time", "'1' MONTH", FROM + "AND R.t - S.t < INTERVAL '1' MONTH"),
        at("INTERVAL '5' has no unit: write INTERVAL '5' MINUTE", "'5'", FROM + "AND R.t - S.t < INTERVAL '5'"),
        at("'parsecs' is not a unit of one", "'5 h", FROM + "AND R.t - S.t < INTERVAL '5 h 5 parsecs'"),
        at("is too large for a float", "1e999", FROM + "AND R.t - S.t < 1e999"),
        at("GROUP BY takes one side of the join: write GROUP BY R", "R.a", "SELECT * FROM R, S GROUP BY R.a"),
        at("GROUP BY R needs an aggregate", "R", "SELECT * FROM R, S WHERE R.a < S.b GROUP BY R"),
        at("`SUM(R.a)` must name columns of S", "sum",
           "SELECT sum(R.a) FROM R, S WHERE R.a < S.b GROUP BY R"),
        at("has many values for one row of R", "S.a", "SELECT S.a, COUNT(*) FROM R, S WHERE R.a < S.b GROUP BY R"),
        at("write JOIN for LEFT JOIN", "R", "SELECT COUNT(*) FROM R LEFT JOIN S ON R.a < S.b GROUP BY R"),
        at("HAVING is not supported", "COUNT(*) > 1",
           "SELECT COUNT(*) FROM R, S WHERE R.a < S.b GROUP BY R HAVING COUNT(*) > 1"),
        at("`R.x` is not an interval", "R.x", FROM + "AND R.x OVERLAPS (S.x, S.y)"),
        at("`S.x` is not an interval: write (R.start, R.end) OVERLAPS", "R.x", FROM + "AND (R.x, R.y) OVERLAPS S.x"),
        at("`(R.x, R.y, R.z)` is not an interval", "R.x", FROM + "AND (R.x, R.y, R.z) CONTAINS S.x"),
        at("unexpected CONTAINS: write contains(text, part)", "CONTAINS", FROM + "AND R.x CONTAINS S.y"),
        at("unexpected PRECEDES: write R.end <= S.start", "PRECEDES", FROM + "AND (R.x, R.y) PRECEDES (S.x, S.y)"),
        at("WITH is not supported", "q", "WITH q AS (SELECT 1) " + FROM),
        at("DISTINCT is not supported", "", "SELECT DISTINCT R.a FROM R, S WHERE R.a < S.b"),
        at("LIMIT is not supported", "3", FROM + "LIMIT 3"),
        at("ORDER BY is not supported: results come in the order", "R.a", FROM + "ORDER BY R.a"),
        at("LEFT JOIN needs its condition: write ON", "S", "SELECT * FROM R LEFT JOIN S WHERE R.a < S.b"),
        at("NATURAL JOIN is not supported", "S", "SELECT * FROM R NATURAL JOIN S"),
        at("write FROM S LEFT SEMI JOIN R ON", "S ON", "SELECT * FROM R RIGHT SEMI JOIN S ON R.a < S.b"),
        at("`S.x = 1`: WHERE of a LEFT JOIN may use columns of R only: move it into ON", "S.x",
           "SELECT * FROM R LEFT JOIN S ON R.a < S.b WHERE R.x = 1 AND S.x = 1"),
        at("`R.x < S.x`: WHERE of a RIGHT JOIN may use columns of S only", "R.x",
           "SELECT * FROM R RIGHT JOIN S ON R.a < S.b WHERE R.x < S.x"),
        at("write SELECT R.* FROM R LEFT ANTI JOIN S", "S.x",
           "SELECT * FROM R LEFT JOIN S ON R.a < S.b WHERE S.x IS NULL"),
        at("a FULL JOIN fills either side with nulls", "R.x", "SELECT * FROM R FULL JOIN S ON R.a < S.b WHERE R.x = 1"),
        at("it returns no rows of S", "S.x", "SELECT * FROM R SEMI JOIN S ON R.a < S.b WHERE S.x = 1"),
        at("`S.x` belongs to S, whose rows SEMI JOIN does not return: select columns of R, or write JOIN", "S.x",
           "SELECT R.x, S.x FROM R SEMI JOIN S ON R.a < S.b"),
        at("`S.x - R.x` belongs to S, whose rows ANTI JOIN", "S.x",
           "SELECT S.x - R.x AS d FROM R ANTI JOIN S ON R.a < S.b"),
        at("write JOIN for LEFT JOIN", "COUNT", "SELECT COUNT(*) FROM R LEFT JOIN S ON R.a < S.b"),
        at("`COUNT(R.x)` is not supported: write COUNT(*)", "COUNT", "SELECT COUNT(R.x) FROM R, S WHERE R.a < S.b"),
        at("a join takes two streams, not 3", "T WHERE", "SELECT * FROM R, S, T WHERE R.a < S.b"),
        at("both streams are called R", "R WHERE", "SELECT * FROM R, R WHERE R.a < R.b"),
        at("needs two roles", "R AS", "SELECT * FROM R AS a WHERE a.x1 < a.x2"),
        at("is not a stream", "1)", "SELECT * FROM (SELECT 1) AS x, S WHERE x.a < S.b"),
        at("takes a name and a role only", "R TABLE",
           "SELECT * FROM R TABLESAMPLE (10 PERCENT), S WHERE R.a < S.b"),
        at("the query has no condition", "*", "SELECT * FROM R, S"),
        at("the query has no FROM", "1", "SELECT 1"),
        at("selects nothing", "", "SELECT FROM R, S WHERE R.a < S.b"),
        at("WHERE is not complete", "WHERE", "SELECT * FROM R, S WHERE"),
        at("expected )", "b", "SELECT * FROM R, S WHERE (R.a < S.b"),
        at("a quote is opened and never closed", "'b", "SELECT * FROM R, S WHERE R.a < 'b"),
        at("unexpected =>: write >=", "=>", FROM + "AND R.a => S.a"),
        at("unexpected &&: write AND", "&&", FROM + "&& R.a > S.a"),
        at("lists no value", "R.x", FROM + "AND R.x IN ()"),
        at("a query starts with SELECT", "*", "SELECT * FROM R UNION SELECT 1"),
        at("and one only", "", "SELECT * FROM t WHERE x1 < x2; DROP TABLE t"),
        at("the text is empty: write a SELECT", "", "  "),
        at("x does not say which row of the pair", "x WINDOW", "SELECT a FROM t WHERE x1 < x WINDOW AS (ROWS 1)"),
        at("there is no stream u here, only t", "u.x1", "SELECT a FROM t WHERE u.x1 < t.x2"),
        at("id does not say which stream", "id", "SELECT id FROM R, S WHERE R.a < S.b"),
        at("there is no stream trip in this join", "trip.id", "SELECT trip.id FROM R, S WHERE R.a < S.b"),
        at("`1` names no column", "1", "SELECT 1 FROM R, S WHERE R.a < S.b"),
        at("`SUM(R.x)` is an aggregate over the matches of each row: write GROUP BY S", "sum",
           "SELECT sum(R.x) FROM R, S WHERE R.a < S.b"),
        at("is not supported: name the columns to show", "R", "SELECT R.* EXCEPT (x) FROM R, S WHERE R.a < S.b"),
        at("cannot all be called y", "R", "SELECT R.* AS y FROM R, S WHERE R.a < S.b"),
        at("cannot both be called x", "id", "SELECT id AS x FROM t WHERE a1 < a2"),
    ],
)  # fmt: skip
def test_errors_name_the_piece_and_point_at_it(message: str, caret_under: str, text: str, parameters: Any) -> None:
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
        ("R.a = 'it''s' OR NOT S.b = TRUE", (R.a == "it's") | ~(S.b == True)),  # noqa: E712
        ("R.a IN (1, S.b, -2.5)", R.a.isin(1, S.b, -2.5)),
        ("R.a NOT IN ('x', 'y')", ~R.a.isin("x", "y")),
        ("R.a IS NULL AND S.b IS NOT NULL", R.a.is_null() & S.b.is_not_null()),
        ("R.a NOT BETWEEN S.b AND 3", ~R.a.between(S.b, 3)),
        ("R.b = X'00ff'", R.b == b"\x00\xff"),
        ("R.d = DATE '2024-02-29'", R.d == date(2024, 2, 29)),
        ("R.d < TIMESTAMP '2024-02-29 08:00:00.5'", R.d < datetime(2024, 2, 29, 8, 0, 0, 500_000)),
        ("R.d < TIMESTAMP '2024-02-29T08:00:00Z'", R.d < datetime(2024, 2, 29, 8, tzinfo=UTC)),
        ("R.d < TIMESTAMP WITH TIME ZONE '2024-02-29 08:00:00+00:00'", R.d < datetime(2024, 2, 29, 8, tzinfo=UTC)),
        ("R.d < TIME '08:30'", R.d < time(8, 30)),
        ("R.d < DECIMAL '0.10'", R.d < Decimal("0.10")),
        ("R.t - S.t < INTERVAL '1 h 30 min'", R.t - S.t < timedelta(minutes=90)),
        ("R.t - S.t > -INTERVAL '5' MINUTE", R.t - S.t > -as_expression(timedelta(minutes=5))),
        ("R.ok AND NOT S.ok", R.ok & ~S.ok),
        ("CONTAINS(R.x, S.x, 3)", contains(R.x, S.x, 3)),
        ("NOT \"contains\"(R.x, S.x, 3) OR R.a = S.a", ~contains(R.x, S.x, 3) | (R.a == S.a)),
    ],
)  # fmt: skip
def test_a_condition_equals_its_python_form(text: str, expected: Expression) -> None:
    got, want = parse_condition(text, "R", "S", {"contains": contains}), expected
    mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
    if isinstance(got, Compare) and repr(got) != repr(want):
        got = Compare(mirrored[got.operator], got.right, got.left)  # type: ignore[arg-type]
    assert repr(got) == repr(want)


def test_functions_of_a_query_are_called_by_the_name_they_are_given() -> None:
    query = parse_query("SELECT * FROM R, S WHERE R.a < S.a AND near(R.x, S.x, 1)", functions={"near": contains})
    call = query.condition.right  # type: ignore[attr-defined]
    assert isinstance(call, Call)
    assert (call.function.compute, call.name) == (contains, "near")  # type: ignore[attr-defined]
    assert repr(pickle.loads(pickle.dumps(call))) == "near(R.x, S.x, 1)"
    with pytest.raises(QueryError, match=r"the query was given near\): pass functions=\{'far': f\} to StreamJoin"):
        parse_query("SELECT * FROM R, S WHERE far(R.x, S.x)", functions={"near": contains})


def test_a_condition_alone_may_not_be_a_query() -> None:
    with pytest.raises(PredicateError, match="subqueries are not supported"):
        parse_condition("SELECT 1", "R", "S")
    with pytest.raises(QueryError, match=r"empty: write a condition such as R\.a < S\.b"):
        parse_condition("", "R", "S")


NUMBERS = st.one_of(st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False)).filter(bool)
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


VALUES = st.one_of(
    NUMBERS, st.text(max_size=4), st.binary(max_size=4), st.booleans(), st.dates(), st.times(), LENGTHS,
    st.datetimes(), st.datetimes(timezones=st.just(UTC)),
)  # fmt: skip


@st.composite
def conditions(draw: Any, depth: int = 3) -> Expression:
    if depth and draw(st.booleans()):
        one, other = draw(conditions(depth - 1)), draw(conditions(depth - 1))
        return draw(st.sampled_from([one & other, one | other, ~one]))
    column, value = draw(st.sampled_from([R["a b"], S.from_, R.x + 1])), draw(VALUES)
    sign = draw(st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
    shapes = [Compare(sign, column, S.y), column == value, column.isin(value, S.y), column.is_null(), R.ok,
              column.is_not_null(), contains(column, value, S.y)]  # fmt: skip
    return draw(st.sampled_from(shapes))


@settings(max_examples=200, deadline=None)
@given(conditions())
def test_what_a_condition_prints_parses_back_to_it(condition: Expression) -> None:
    assert repr(parse_condition(repr(condition), "R", "S", {"contains": contains})) == repr(condition)


@settings(max_examples=200, deadline=None)
@given(terms(R["a b"]), terms(S.from_), st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
def test_what_an_expression_prints_parses_back_to_it(left: Any, right: Any, sign: Any) -> None:
    condition = Compare(sign, left, right) & (abs(R.x - S.x) < 1e-07) & ~(R.y < S.y)
    assert repr(parse_condition(repr(condition), "R", "S")) == repr(condition)
