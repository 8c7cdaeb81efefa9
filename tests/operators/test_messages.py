# ruff: noqa: E501 - one entry of a table is one line
"""Wrong queries and topologies, and what each is answered: a table to read, like the rest of the documentation.

Every entry is (what is written, the error, what the message must say). `join(..)` is a join of R and S with one argument
changed, `run(..)` runs such a join over the tables below, `sql(..)` is StreamJoin.from_sql, `topology(..)` builds a
topology with one input `lines`, `running(..)` talks to a running join. Places in SQL texts are tested in test_sql.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import operators
import topology as topology_package
from operators import CountWindow, RunningJoin, StreamJoin, function, stream
from topology import Topology, TopologyBuilder

TABLE = pa.table(
    {
        "id": [1, 2, 3],
        "x": [1.0, 2.0, 3.0],
        "ts": [1, 2, 3],
        "name": ["a", "b", "c"],
        "raw": [b"a", b"b", b"c"],
        "ok": [True, False, None],
        "price": [Decimal("1.10")] * 3,
        "day": pa.array([1, 2, 3], pa.date32()),
        "at": pa.array([1, 2, 3], pa.timestamp("s")),
        "utc": pa.array([1, 2, 3], pa.timestamp("s", "UTC")),
        "took": pa.array([1, 2, 3], pa.duration("s")),
        "tags": [[1], [2], [3]],
    }
)


def join(**changed: Any) -> StreamJoin:
    given: dict[str, Any] = {
        "left": "R",
        "right": "S",
        "on": "R.x < S.x",
        "window": CountWindow(10),
        "event_time": "ts",
    }
    return StreamJoin(**(given | changed))


def run(on: Any = "R.x < S.x", left: Any = TABLE, right: Any = TABLE, **changed: Any) -> pa.Table:
    return join(on=on, **changed).collect({"R": left, "S": right})


def sql(text: str, **options: Any) -> StreamJoin:
    return StreamJoin.from_sql(text, **options)


def running(use: Callable[[RunningJoin], object]) -> None:
    with join().launch(sources={"R": ["R"], "S": ["S"]}) as handle:
        use(handle)


def topology(add: Callable[[TopologyBuilder], object]) -> Topology:
    builder = TopologyBuilder("words")
    builder.input("lines")
    add(builder)
    return builder.build()


def same(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


@function
def near(one: pa.Array, other: pa.Array) -> pa.Array:
    return pc.less(one, other)


@function
def one_for_all(one: pa.Array, other: pa.Array) -> pa.Array:
    return pa.array([True])


@function
def difference(one: pa.Array, other: pa.Array) -> pa.Array:
    return pc.subtract(one, other)


@function
def failing(one: pa.Array, other: pa.Array) -> pa.Array:
    raise RuntimeError("no luck")


SIDES = [
    ("join(left='')", "JoinError", "left must be the name of a stream, not ''"),
    ("join(right=5)", "JoinError", "right must be the name of a stream, not 5"),
    ("join(streams={'T': 'trips'})", "JoinError", "streams names 'T', which is not a role of this join; its roles: ('R', 'S')"),
    ("join(streams='trips')", "JoinError", "streams must say which stream each role is, such as {'a': 'trips'}, not 'trips'"),
    ("StreamJoin('R', 'R', R.x < R.y, CountWindow(9))", "PredicateError", "`R.x`: there is no stream 'R' in this join; its sides are 'R1' and 'R2'"),
    ("StreamJoin('T', 'T', 'T.x < T.y', CountWindow(9))", "QueryError", "x does not say which row of the pair it belongs to: write x1 or x2"),
]  # fmt: skip

CONDITIONS = [
    ("join(on=None)", "PredicateError", "on must be SQL text or a column expression, not None"),
    ("join(on='')", "QueryError", "the text is empty: write a condition such as R.a < S.b"),
    ("join(on='R.x <')", "QueryError", "something is missing beside <"),
    ("join(on='R.x < S.x, R.y < S.y')", "QueryError", "unexpected ,: conditions are joined with AND"),
    ("join(on='WHERE R.x < S.x')", "QueryError", "unexpected WHERE: a condition is written without WHERE"),
    ("join(on='x < S.x')", "QueryError", "column x does not say which stream it belongs to: write R.x or S.x"),
    ("join(on='R.x < T.x')", "QueryError", "there is no stream T in this join: its sides are R and S"),
    ("join(on='R.name = \"a\"')", "QueryError", "column a does not say which stream it belongs to: write R.a or S.a; a string is written 'a', in single quotes"),
    ("join(on='CAST(R.x AS UUID) < S.x')", "QueryError", "`CAST(R.x AS UUID)`: UUID is not a type that a value can be cast to: write one of BOOLEAN, INTEGER, BIGINT"),
    ("run('CAST(R.x AS DATE) < S.day')", "SchemaError", "`CAST(R.x AS DATE)`: a float cannot be cast to DATE (R.x is double)"),
    ("join(on='lowr(R.name) = S.name')", "QueryError", "lowr is not a function of this query (it is not built in): write lower, or pass functions={'lowr': f}"),
    ("join(on='size_of(R.name) = 1')", "QueryError", "where f takes Arrow arrays and returns one boolean per row, or f = function(f, returns=pa.float64()) for a value"),
    ("join(on='lower(R.name, 1) = S.name')", "QueryError", "lower takes 1 argument, not 2: the text in lower case"),
    ("join(on='R.ok XOR S.ok')", "QueryError", "unexpected XOR: write (one) != (other) for two conditions, xor(one, other) for the bits of integers"),
    ("join(on='R.name ~ S.name')", "QueryError", "unexpected ~: write regexp_matches(text, pattern)"),
    ("join(on='R.id DIV 2 = S.id')", "QueryError", "after DIV: write //"),
    ("join(on=\"R.at - S.at < INTERVAL '1' MONTH\")", "QueryError", "`INTERVAL '1' MONTH` has no fixed length: add it to a time, R.ts + INTERVAL '1' MONTH, or write INTERVAL '30' DAY"),
    ("join(on='R.ok = S.x IS NULL')", "QueryError", "engines read a condition beside a comparison in different ways: put it in brackets"),
    ("join(on='R.x IS NOT DISTINCT FROM S.x = TRUE')", "QueryError", "put it in brackets"),
    ("join(on='R.at < current_timestamp')", "QueryError", "current_timestamp has no meaning in a join of streams: compare event times, or write TIMESTAMP '..'"),
    ("join(on='R.x < S.x < 3')", "QueryError", "`R.x < S.x` is a condition where a value is expected: join conditions with AND (&)"),
    ("sql('SELCT R.id FROM R JOIN S ON R.x < S.x')", "QueryError", "a query starts with SELECT, not SELCT"),
    ("sql('SELECT R.id FORM R JOIN S ON R.x < S.x')", "QueryError", "after FORM: write FROM"),
    ("sql('SELECT R.id FROM R ASOF RIGHT JOIN S ON R.id = S.id AND R.at >= S.at')", "QueryError", "ASOF RIGHT JOIN is not supported: write ASOF JOIN, or ASOF LEFT JOIN"),
    ("run('lower(R.id) = S.name')", "SchemaError", "`lower(R.id)`: its argument must be text (CAST it AS VARCHAR), not an integer (R.id is int64)"),
    ("run('coalesce(R.name, 0) = S.name')", "SchemaError", "the values must be of one kind, not a string and an integer"),
    ("run('extract(fortnight FROM R.at) = 1')", "SchemaError", "'FORTNIGHT' is not a part of a time: write one of year, quarter, month"),
    ("run('R.id = (R.x < S.x)')", "SchemaError", "`R.x < S.x` is a condition where a value is expected: compare it with conditions, TRUE and FALSE only"),
    ("run('round(R.x)')", "SchemaError", "`round(R.x)` is double, not a condition: compare it with something"),
    ("join(on='R.id / 0 < S.id')", "QueryError", "`R.id / 0`: it divides by zero; write a factor other than 0"),
    ("join(on='near(R.x, S.x)')", "QueryError", "near is not a function of this query (it is not built in): pass functions={'near': f} to StreamJoin.from_sql"),
    ("sql('SELECT R.id FROM R, S WHERE near(R.x, S.x)')", "QueryError", "pass functions={'near': f} to StreamJoin.from_sql"),
    ("join(on='S.id = R.id AND R.id > ANY(R.list)')", "QueryError", "`R.id > ANY(R.list)` is not supported: list_contains(list, value) says whether a list holds a value, as value = ANY(list) does; for another comparison with ANY or ALL write a Python function of your own"),
    ("join(on='R.id != ALL(R.list)')", "QueryError", "`R.id <> ALL(R.list)` is not supported: list_contains(list, value)"),
    ("join(on='ALL(R.list) < R.id')", "QueryError", "for another comparison with ANY or ALL write a Python function of your own"),
    ("join(on=R.x + 1)", "PredicateError", "`R.x + 1` is not a condition: write a comparison such as R.a < S.b"),
    ("join(on=T.x < S.x)", "PredicateError", "`T.x`: there is no stream 'T' in this join; its sides are 'R' and 'S'"),
    ("join(on=(R.x < S.x).alias('less'))", "PredicateError", "`R.x < S.x AS less` is not a condition"),
    ("join(on=R.x < S.x.alias('x'))", "PredicateError", "`S.x AS x`: an alias belongs in the select list, not in a condition"),
    ("R.x < S.x < R.y", "TypeError", "write a < b < c as b.between(a, c)"),
    ("(R.x < S.x) and (R.y < S.y)", "TypeError", "combine conditions with `&`, `|` and `~`, each in brackets, not with `and`, `or`, `not`"),
    ("R.x in [1, 2]", "TypeError", "and a in [..] as a.isin(..)"),
    ("R.x == None", "PredicateError", "a comparison with NULL is never true; write column.is_null() or column.is_not_null()"),
    ("R.x < float('nan')", "PredicateError", "nan cannot be used in a join condition: write a finite number"),
    ("R.x < [1, 2]", "PredicateError", "[1, 2] (list) cannot be used in a join condition: write a number, a Decimal, a string, bytes, a bool, or a date"),
    ("R.x.isin()", "PredicateError", "`R.x IN ()` lists no value, so nothing would match: name at least one"),
    ("R._x", "AttributeError", "'_x': write such a column as stream['_x']"),
    ("stream('')", "TypeError", "a stream is named by a non-empty string, not ''"),
    ("col('R.')", "PredicateError", "col('R.') names no column: write col('stream.column')"),
    ("function(5)", "PredicateError", "function() takes a Python function over Arrow arrays, not 5"),
    ("near(R.x, S.x, 3)", "PredicateError", "`near(R.x, S.x, 3)` does not fit the function: too many positional arguments"),
    ("run(one_for_all(R.x, S.x))", "TaskError", "`one_for_all(R.x, S.x)`: the function must return one boolean per row; it got 3 rows and returned 1"),
    ("run(difference(R.x, S.x))", "TaskError", "`difference(R.x, S.x)`: the function must return an Arrow array of booleans, not double"),
    ("run(failing(R.x, S.x))", "TaskError", "`failing(R.x, S.x)`: the function raised RuntimeError: no luck"),
]  # fmt: skip

TYPES = [
    ("run('R.x')", "SchemaError", "`R.x` is double, not a condition: compare it with something, or use a column of booleans"),
    ("run('R.name < 3')", "SchemaError", "`R.name < 3`: a string cannot be compared with an integer (R.name is string); cast name: table[\"name\"].cast(\"int64\"), or write the constant in quotes"),
    ("run(\"R.x < 'a'\")", "SchemaError", "`R.x < 'a'`: a float cannot be compared with a string (R.x is double); write the number without quotes"),
    ("run(\"R.ok = 'true'\")", "SchemaError", "(R.ok is bool); write TRUE or FALSE without quotes"),
    ("run(\"R.raw = 'a'\")", "SchemaError", "a binary cannot be compared with a string (R.raw is binary); write bytes, such as b'..' or X'..'"),
    ("run(\"R.at < '2024-13-01'\")", "SchemaError", "'2024-13-01' cannot be read as timestamp[s]: write '2024-02-29 08:30:00'"),
    ("run(\"R.at < R.name\")", "SchemaError", "a timestamp cannot be compared with a string"),
    ("run('R.at < S.utc')", "SchemaError", "a timestamp cannot be compared with a zoned timestamp"),
    ("run('R.at < S.utc')", "SchemaError", "give at a zone: pc.assume_timezone(table[\"at\"], \"UTC\")"),
    ("run(R.utc < datetime(2024, 1, 1))", "SchemaError", "give the time that is written a zone: datetime(.., tzinfo=timezone.utc)"),
    ("run(R.at < datetime(2024, 1, 1, tzinfo=UTC))", "SchemaError", "`R.at < TIMESTAMP '2024-01-01 00:00:00+00:00'`: a timestamp cannot be compared with a zoned timestamp"),
    ("run('R.at + 3 < S.at')", "SchemaError", "write a length of time: datetime.timedelta(..) or INTERVAL '5' MINUTE"),
    ("run(R.at < time(8))", "SchemaError", "a timestamp cannot be compared with a time of day (R.at is timestamp[s]); write the day as well"),
    ("run(R.day < timedelta(1))", "SchemaError", "compare the difference of two times with it"),
    ("run('R.at * 2 < S.at')", "SchemaError", "a timestamp cannot be scaled by 2"),
    ("run('R.took < S.x')", "SchemaError", "a duration cannot be compared with a float"),
    ("run(R.x < Decimal('0.5'))", "SchemaError", "a float cannot be compared with a decimal (R.x is double); write the number without Decimal(..), as a float"),
    ("run('R.price * 2 < R.x AND R.x < S.x')", "SchemaError", "cast price: table[\"price\"].cast(\"float64\"), or x, to stay exact: table[\"x\"].cast(pa.decimal128(3, 2))"),
    ("run('R.tags = S.id')", "SchemaError", "a list cannot be compared with an integer (R.tags is list<item: int64>, S.id is int64); compare an element, R.list[1]"),
    ("run('R.no < S.x')", "SchemaError", "stream 'R': column 'no', which the join needs, is missing; columns: id, x, ts"),
]  # fmt: skip

WINDOWS = [
    ("join(window=10)", "JoinError", "window must be a CountWindow, a TimeWindow or an UnboundedWindow, or a pair of them for left and right, not 10"),
    ("join(window=(CountWindow(1),))", "JoinError", "or a pair of them for left and right, not (CountWindow(1),)"),
    ("join(window=None)", "NoWindowError", "the join has no window: give window=, a WINDOW clause, or, with event_time=, a condition that bounds the difference of the event times, such as R.ts BETWEEN S.ts - INTERVAL '5' MINUTE AND S.ts"),
    ("join(window=CountWindow(9, per_key=True))", "JoinError", "a window per key needs an equality that defines the key: add one to the condition, such as R.key = S.key"),
    ("CountWindow(0)", "WindowError", "CountWindow: size must be a whole number of 1 or more, not 0"),
    ("CountWindow(9, slide=1.5)", "WindowError", "CountWindow: slide must be a whole number of 1 or more, not 1.5"),
    ("CountWindow(9, per_key='id')", "WindowError", "CountWindow: per_key must be True or False, not 'id'"),
    ("TimeWindow(-1)", "WindowError", "TimeWindow: size must be zero or more, not -1"),
    ("TimeWindow('10 min', slide=0)", "WindowError", "TimeWindow: slide must be positive, not 0"),
    ("TimeWindow('ten min')", "DurationError", "'ten min' is not a length of time: write numbers with units, such as \"250 ms\", \"5 s\", \"10 min\""),
    ("TimeWindow('10 m')", "DurationError", "m may be minutes or months: write min"),
    ("TimeWindow('1 month')", "DurationError", "months differ in length: write days"),
    ("TimeWindow.interval('5 min', 3)", "WindowError", "before is '5 min' and after 3: give both a unit, or neither"),
    ("run(window=TimeWindow('1 s'))", "SchemaError", "1 s is a length of time, but event time is int64: write it as a number in that unit, or make the event-time column a timestamp"),
]  # fmt: skip

KINDS_AND_SELECTIONS = [
    ("join(kind='outer')", "JoinError", "kind must be one of 'inner', 'left', 'right', 'full', 'semi', 'anti', 'count', 'asof', 'asof inner', not 'outer'"),
    ("join(kind='left', where='R.x < S.x')", "PredicateError", "where: `R.x < S.x` must use columns of one stream only: move it to the join condition (on)"),
    ("join(where=3)", "PredicateError", "where must be SQL text or a column expression, not 3"),
    ("join(kind='semi', select=['R.id', 'S.id'])", "JoinError", "select: 'S.id' belongs to 'S', whose rows kind='semi' does not return: select columns of 'R', or ask for kind='inner'"),
    ("join(kind='anti', select=[S.x - R.x])", "JoinError", "select: `S.x - R.x` belongs to 'S', whose rows kind='anti' does not return: select columns of 'R'"),
    ("join(select=[])", "JoinError", "select must be a list of columns such as ['R.id', 'S.id'], not []"),
    ("join(select='R.id')", "JoinError", "select must be a list of columns such as ['R.id', 'S.id'], not 'R.id'"),
    ("join(select=['id'])", "JoinError", "select: 'id' must start with 'R.' or 'S.' and name a column; a computed value is written with columns, such as (stream('R').x * 2).alias('double')"),
    ("join(select=['R.id AS key'])", "JoinError", "select: 'R.id AS key': write stream('R')['id'].alias('key') for another name"),
    ("join(select=[T.id])", "JoinError", "select: `T.id` is not a column of this join: write R.id or S.id"),
    ("join(select=[T.x + 1])", "JoinError", "select: `T.x + 1` names a column of 'T', which is not a side of this join: its sides are 'R' and 'S'"),
    ("join(select=['R.id', 'R.id'])", "JoinError", "select: 'R.id' would appear twice in the results: select it once, or give it another name"),
    ("join(kind='count', select=[R.id.alias('matches')])", "JoinError", "select: 'matches' would appear twice in the results"),
    ("run(select=[(R.name + 1).alias('q')])", "SchemaError", "`R.name + 1`: a string + an integer has no meaning (R.name is string)"),
    ("run(select=[R.at + S.at])", "SchemaError", "times are subtracted from each other, not added; a length of time is added to a time"),
    ("run(select=['R.no'])", "SchemaError", "stream 'R': column 'no', which the join needs, is missing; columns: id, x"),
]  # fmt: skip

SETTINGS = [
    ("join(event_time=5)", "JoinError", "event_time must be the name of a column, or a mapping of stream to column, not 5"),
    ("join(event_time={'T': 'ts'})", "JoinError", "event_time names 'T', which is not a stream of this join: 'R', 'S'"),
    ("join(event_time={'R': 'ts'})", "JoinError", "event_time has no column for 'S': name a column for each of 'R', 'S'"),
    ("join(out_of_order=-1)", "JoinError", "out_of_order of stream 'R' must not be negative: -1"),
    ("join(out_of_order='5')", "JoinError", "out_of_order of stream 'R': '5' is not a length of time: write numbers with units"),
    ("join(out_of_order={'T': '5 s'})", "JoinError", "out_of_order names 'T', which is not a stream of this join"),
    ("join(idle_after=-1)", "JoinError", "idle_after must be more than 0 seconds, not -1"),
    ("join(ordering='random')", "JoinError", "ordering must be 'strict', 'outer', 'none' or a whole number k of 1 or more, not 'random'"),
    ("join(step_rows=0)", "JoinError", "step_rows must be a whole number of 1 or more, not 0"),
    ("join(using='fastest')", "JoinError", "using must be an engine such as SPOJoin(), or 'auto', not 'fastest'"),
    ("SPOJoin(elements=0)", "JoinError", "SPOJoin: elements must be a whole number of 1 or more, or None, not 0"),
    ("SPOJoin(mutable='liquid')", "JoinError", "SPOJoin: mutable must be 'fused' or 'decomposed', not 'liquid'"),
    ("IndexJoin(index='btree')", "JoinError", "IndexJoin: index must be one of auto, "),
    ("SplitJoin(cores=0)", "JoinError", "SplitJoin: cores must be a whole number of 1 or more, or None, not 0"),
]  # fmt: skip

QUERIES = [
    ("sql(5)", "QueryError", "a query is SQL text, not 5"),
    ("sql('SELECT * FROM R, S WHERE R.x < S.x')", "NoWindowError", "the join has no window: give window=, a WINDOW clause"),
    ("sql('SELECT * FROM R, S WINDOW AS (ROWS 5)')", "QueryError", "the query has no condition: write WHERE R.a < S.b, or FROM R CROSS JOIN S for all pairs"),
    ("sql('SELECT * FROM R, S, T WHERE R.x < S.x WINDOW AS (ROWS 5)')", "QueryError", "a join takes two streams, not 3"),
    ("sql('SELECT * FROM R, R WHERE R.x < R.y WINDOW AS (ROWS 5)')", "QueryError", "both streams are called R: give them roles, as in FROM R AS a, R AS b"),
    ("sql('SELECT * FROM R LEFT JOIN S ON R.x < S.x WHERE S.x > 1 WINDOW AS (ROWS 5)')", "QueryError", "`S.x > 1`: WHERE of a LEFT JOIN may use columns of R only: move it into ON, which decides which rows match"),
    ("sql('SELECT * FROM R LEFT JOIN S ON R.x < S.x WHERE S.x IS NULL WINDOW AS (ROWS 5)')", "QueryError", "`S.x IS NULL` asks for the rows of R without a match: write SELECT R.* FROM R LEFT ANTI JOIN S ON .."),
    ("sql('SELECT S.x FROM R SEMI JOIN S ON R.x < S.x WINDOW AS (ROWS 5)')", "QueryError", "`S.x` belongs to S, whose rows SEMI JOIN does not return: select columns of R, or write JOIN"),
    ("sql('SELECT sum(R.x) FROM R, S WHERE R.x < S.x WINDOW AS (ROWS 5)')", "QueryError", "`SUM(R.x)` is an aggregate over the matches of each row: write GROUP BY S for the rows of S, and aggregate columns of R"),
    ("sql('SELECT * FROM R, S WHERE R.x < S.x GROUP BY R.x WINDOW AS (ROWS 5)')", "QueryError", "GROUP BY takes one side of the join: write GROUP BY R for a result for every row of R, with COUNT(*) and aggregates of columns of S"),
    ("sql('SELECT * FROM R, S WHERE R.x < S.x LIMIT 3 WINDOW AS (ROWS 5)')", "QueryError", "LIMIT is not supported: a join of streams has no end"),
    ("sql('SELECT * FROM R, S WHERE R.x < S.x WINDOW AS (5 ROWS)')", "QueryError", "a window is an INTERVAL or ROWS: write (ROWS 60), (INTERVAL '60' MINUTE)"),
    ("sql('SELECT * FROM R, S WHERE R.x < S.x WINDOW AS (INTERVAL W)')", "QueryError", "the window's 'W' has no value: pass parameters={\"W\": ..}"),
    ("sql('SELECT * FROM R, S WHERE R.x < S.x WINDOW R AS (ROWS 5)')", "QueryError", "S has no window: write WINDOW R AS (..), S AS (..)"),
    ("sql('SELECT * FROM R, S WHERE far(R.x) WINDOW AS (ROWS 5)', functions={'near': near})", "QueryError", "far is not a function of this query (the query was given near)"),
    ("sql('SELECT * FROM R, S WHERE R.x < S.x WINDOW AS (ROWS 5)', functions={'near': 5})", "PredicateError", "functions: 'near' must name a function over Arrow arrays, not 5"),
]  # fmt: skip

ROWS = [
    ("join().collect({'R': TABLE})", "JoinError", "collect takes the rows of 'R', 'S', not of 'R'"),
    ("join().collect([TABLE, TABLE])", "JoinError", "collect takes the rows of 'R', 'S' by name, as {'R': .., 'S': ..}, not list"),
    ("join().collect({'R': TABLE, 'S': 'file.csv'})", "JoinError", "dict of columns, a list of dicts, or another object with __arrow_c_stream__ or __arrow_c_array__, not str"),
    ("join().collect({'R': TABLE, 'S': {5: TABLE}})", "JoinError", "stream 'S': a source needs a name, not 5"),
    ("join().launch('ray')", "JoinError", "runtime must be LocalRuntime(), RayRuntime() or another Runtime, not 'ray'"),
    ("join().launch(sources={'R': 'a'})", "JoinError", "sources of 'R' must be a list of names such as ['a'], not 'a'"),
    ("join().launch(sources={'T': ['a']})", "JoinError", "sources names 'T', which is not a stream of this join: 'R', 'S'"),
    ("run(right=TABLE.drop_columns(['x']))", "SchemaError", "stream 'S': column 'x', which the join needs, is missing"),
    ("run(right=TABLE.rename_columns(['#id', *TABLE.column_names[1:]]))", "SchemaError", "stream 'S': column '#id' must not start with '#': rename it"),
    ("run(event_time='no')", "SchemaError", "stream 'R': event-time column 'no' is missing; columns: id, x"),
    ("run(event_time='name')", "SchemaError", "event-time column 'name' is string; it must be a timestamp, a date, an integer or a float: cast it before sending"),
    ("run(event_time={'R': 'at', 'S': 'utc'})", "SchemaError", "'R' has timestamp[s], 'S' has timestamp[s, tz=UTC]: cast that of 'R': pc.assume_timezone(table[\"at\"], \"UTC\")"),
    ("run(event_time={'R': 'ts', 'S': 'x'})", "SchemaError", "event times of different types cannot be merged: 'R' has int64, 'S' has double: cast one of them"),
    ("run(right=TABLE.take([2, 1]))", "OutOfOrderError", "stream 'S', source 'S': 'ts' goes backwards at row 1 (3 is followed by 2): sort each source by 'ts', declare how far its rows may be out of order"),
    ("running(lambda handle: handle.send('T', TABLE))", "UnknownInputError", "has no input stream 'T'; its input streams: 'R', 'S'"),
    ("running(lambda handle: handle.send('R', [1]))", "InputError", "stream 'R' takes an Arrow table, record batch or reader, a pandas or Polars frame, a DuckDB relation, a dict of columns, a list of dicts, or another object with __arrow_c_stream__ or __arrow_c_array__, not a list of int"),
    ("running(lambda handle: (handle.finish('R'), handle.send('R', TABLE)))", "SourceEndedError", "stream 'R' has been finished; it takes no more rows"),
    ("running(lambda handle: handle.finish('R', 'nobody'))", "InputError", "stream 'R' has no source 'nobody'; its sources: 'R'"),
]  # fmt: skip

TOPOLOGIES = [
    ("TopologyBuilder('words').build()", "TopologyError", "topology 'words' has no components: add an input or a spout first"),
    ("topology(lambda b: b.input('lines'))", "DuplicateComponentError", "component 'lines' exists already in topology 'words': rename one"),
    ("topology(lambda b: b.bolt('split', 5))", "TopologyError", "component 'split' must be a Bolt, not int"),
    ("topology(lambda b: b.bolt('split', MapBatches(same), parallelism=0))", "TopologyError", "component 'split': parallelism must be a whole number of 1 or more, not 0"),
    ("topology(lambda b: b.bolt('split', MapBatches(same)))", "TopologyError", "component 'split' subscribes to no other component: add a grouping, such as shuffle_grouping"),
    ("topology(lambda b: b.bolt('split', MapBatches(same)).shuffle_grouping('words'))", "UnknownComponentError", "component 'split' subscribes to 'words', which does not exist; components: 'lines', 'split'"),
    ("topology(lambda b: b.bolt('split', MapBatches(same)).shuffle_grouping('lines', 'side'))", "UnknownStreamError", "subscribes to stream 'side' of 'lines', which emits only: 'default'"),
    ("topology(lambda b: b.bolt('split', MapBatches(same)).fields_grouping('lines'))", "GroupingError", "component 'split' groups 'lines' by fields but names none: add a column"),
    ("topology(lambda b: b.bolt('split', MapBatches(lambda x, at=Lock(): x)).shuffle_grouping('lines'))", "UnpicklableError", "open files, sockets and locks in build(), or in the function that uses them"),
    ("topology(lambda b: (b.bolt('a', MapBatches(same)).shuffle_grouping('b'), b.bolt('b', MapBatches(same)).shuffle_grouping('a')))", "CycleError", "feed each other in a cycle: remove one edge"),
]  # fmt: skip

MESSAGES = [*SIDES, *CONDITIONS, *TYPES, *WINDOWS, *KINDS_AND_SELECTIONS, *SETTINGS, *QUERIES, *ROWS, *TOPOLOGIES]

SCOPE: dict[str, Any] = {
    **{name: getattr(topology_package, name) for name in topology_package.__all__},
    **{name: getattr(operators, name) for name in operators.__all__},
    **{name: stream(name) for name in ("R", "S", "T")},
    "TABLE": TABLE, "UTC": UTC, "Decimal": Decimal, "Lock": Lock, "date": date, "datetime": datetime, "difference": difference,
    "failing": failing, "join": join, "near": near, "one_for_all": one_for_all, "run": run, "running": running,
    "same": same, "sql": sql, "time": time, "timedelta": timedelta, "topology": topology,
}  # fmt: skip


@pytest.mark.parametrize(("written", "error", "message"), MESSAGES, ids=[written for written, _, _ in MESSAGES])
def test_a_mistake_is_named_with_its_remedy(written: str, error: str, message: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        eval(written, SCOPE)  # noqa: S307
    assert type(caught.value).__name__ == error
    assert message in str(caught.value)


def test_the_table_is_as_long_as_promised() -> None:
    assert len({written for written, _, _ in MESSAGES}) >= 80
