# ruff: noqa: E501 - one entry of a table is one line
"""The corpus of join queries beside DuckDB: under 3 % are refused, none is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from operators import JoinError, MultiJoin, PredicateError, StreamJoin, UnboundedWindow
from tests.query_corpus import REFUSED, SELECTED, A, B, R, S, T, queries, without_nan
from topology import SchemaError

pytestmark = pytest.mark.filterwarnings("ignore::operators.UnboundedStateWarning")


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    con = duckdb.connect(config={"threads": 1})
    con.execute("SET error_on_division_by_zero = false")
    for name, table in (("R", R), ("S", S), ("T", T), ("A", A), ("B", B)):
        con.register(f"{name}_rows", without_nan(table) if "x" in table.schema.names else table)
        con.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_rows")
    yield con
    con.close()


def joined(query: str) -> Counter[tuple[Any, ...]]:
    if "ASOF" in query:
        found = StreamJoin.from_sql(query, event_time="ts").collect({"A": A, "B": B})
    elif "T.id" in query:
        found = MultiJoin.from_sql(query, windows=UnboundedWindow()).collect({"R": R, "S": S, "T": T})
    else:
        found = StreamJoin.from_sql(query, window=UnboundedWindow()).collect({"R": R, "S": S})
    return counted(zip(*found.to_pydict().values(), strict=True))


def counted(rows: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """The rows with values that hash, and dates as the midnights that they are."""
    return Counter(map(comparable, rows))


def check(con: duckdb.DuckDBPyConnection, asked: list[str]) -> None:
    refused, wrong = [], []
    for query in asked:
        try:
            found = joined(query)
        except (JoinError, PredicateError, SchemaError):
            refused.append(query)
            continue
        if found != counted(con.execute(query).fetchall()):
            wrong.append(query)
    assert wrong == []
    assert [query for query in refused if query not in REFUSED] == []
    assert len(refused) < 0.03 * max(len(asked), 100)


def test_a_sample_of_the_corpus_gives_what_duckdb_gives(con: duckdb.DuckDBPyConnection) -> None:
    check(con, list(queries())[::12])


@pytest.mark.thorough
def test_the_corpus_gives_what_duckdb_gives(con: duckdb.DuckDBPyConnection) -> None:
    asked = list(queries())
    assert len(asked) >= 1_000
    assert set(REFUSED) <= set(asked)
    check(con, asked)


@pytest.mark.parametrize("item", SELECTED)
def test_a_selected_value_is_what_duckdb_computes(con: duckdb.DuckDBPyConnection, item: str) -> None:
    for kind in ("LEFT JOIN", "FULL JOIN"):
        query = f"SELECT R.id, S.id, {item} AS value FROM R {kind} S ON R.j = S.j"
        join = StreamJoin.from_sql(query, window=UnboundedWindow())
        found = zip(*join.collect({"R": R, "S": S}).to_pydict().values(), strict=True)
        assert Counter(map(comparable, found)) == Counter(map(comparable, con.execute(query).fetchall())), query


def comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(_comparable, row))


def _comparable(value: Any) -> Any:
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize("query", REFUSED)
def test_what_is_refused_says_what_to_write(query: str) -> None:
    with pytest.raises((JoinError, PredicateError, SchemaError), match=r"write |move |compare |results come|stop reading|takes a list|gives |counts "):
        joined(query)


EVERY_COLUMN = "id, i, j, u, x, f, p, b, t, d, ts, l, st, iv"
ADVICE: dict[str, tuple[str, str]] = {
    "SELECT R.id, S.id FROM R NATURAL JOIN S": ("or USING (..)", f"SELECT R.id, S.id FROM R JOIN S USING ({EVERY_COLUMN})"),
    "SELECT R.id, S.id FROM R JOIN S ON R.i = (SELECT max(S.i) FROM S)": ("and a value where one is meant", "SELECT R.id, S.id FROM R JOIN S ON R.i = 3"),
    "SELECT R.id, S.id FROM R JOIN S ON R.i = S.i ORDER BY R.id": ("leave it out", "SELECT R.id, S.id FROM R JOIN S ON R.i = S.i"),
    "SELECT DISTINCT R.id FROM R JOIN S ON R.i = S.i": ("LEFT SEMI JOIN gives left rows once", "SELECT R.id FROM R LEFT SEMI JOIN S ON R.i = S.i"),
    "SELECT R.id, S.id FROM R LEFT JOIN S ON R.i = S.i WHERE S.i = 1": ("or write JOIN", "SELECT R.id, S.id FROM R JOIN S ON R.i = S.i WHERE S.i = 1"),
    "SELECT R.id, S.id FROM R JOIN S ON R.st = {'a': 1, 'b': 'x'}": ("a field, R.s.a = 2", "SELECT R.id, S.id FROM R JOIN S ON R.st.a = 1 AND R.st.b = 'x'"),
    "SELECT R.id, S.id FROM R JOIN S ON R.i = '1'": ("write the number without quotes", "SELECT R.id, S.id FROM R JOIN S ON R.i = 1"),
    "SELECT R.id FROM R WHERE R.i IN (SELECT i FROM S)": ("write SEMI JOIN", "SELECT R.id FROM R SEMI JOIN S ON R.i = S.i"),
    "SELECT R.id, S.id FROM R JOIN S ON R.t SIMILAR TO 'a|b'": ("regexp_matches(text, pattern)", "SELECT R.id, S.id FROM R JOIN S ON regexp_matches(R.t, '^(a|b)$')"),
    "SELECT R.id FROM R WHERE EXISTS (SELECT 1 FROM S WHERE R.i = S.i)": ("write SEMI JOIN for EXISTS", "SELECT R.id FROM R SEMI JOIN S ON R.i = S.i"),
    "SELECT R.id, S.id FROM R JOIN S ON R.l = []": ("len(R.l) = 0", "SELECT R.id, S.id FROM R JOIN S ON len(R.l) = 0"),
}
"""What is refused: words of the message, and the query that follows them."""
OTHERWISE = {
    "SELECT R.id, S.id FROM R JOIN S ON R.i = S.i LIMIT 3": "stop reading its results instead",
    "SELECT R.id, count(*) FROM R JOIN S ON R.i = S.i GROUP BY R.id": "write GROUP BY R for a result for every row of R",
    "SELECT R.id, S.id FROM R JOIN S ON i = j": "write R.i or S.i",
}
"""The same, where the two do not give the same rows: tests of their own follow them."""


@pytest.mark.parametrize("refused", ADVICE)
def test_what_a_refusal_says_to_write_means_the_same(con: duckdb.DuckDBPyConnection, refused: str) -> None:
    said, instead = ADVICE[refused]
    with pytest.raises((JoinError, PredicateError, SchemaError)) as error:
        joined(refused)
    assert said in str(error.value)
    assert joined(instead) == counted(con.execute(refused).fetchall())


def test_every_refusal_says_something_that_works(con: duckdb.DuckDBPyConnection) -> None:
    assert set(REFUSED) <= {*ADVICE, *OTHERWISE}
    for refused, said in OTHERWISE.items():
        with pytest.raises((JoinError, PredicateError, SchemaError)) as error:
            joined(refused)
        assert said in str(error.value)
    check(con, ["SELECT R.id, S.id FROM R JOIN S ON R.i = S.j"])
    with StreamJoin.from_sql("SELECT R.id, S.id FROM R JOIN S ON R.i = S.i", window=UnboundedWindow()).launch() as running:
        for name, table in (("R", R), ("S", S)):
            running.send(name, table)
        running.finish()
        first: pa.Table = pa.Table.from_batches(running.results()).slice(0, 3)
    assert first.num_rows == 3
    grouped = "SELECT R.id, COUNT(*) FROM R JOIN S ON R.i = S.i GROUP BY R"
    times = {"R": R.append_column("n", pa.repeat(1, len(R))), "S": S.append_column("n", pa.repeat(0, len(S)))}
    found = StreamJoin.from_sql(grouped, window=UnboundedWindow(), event_time="n").collect(times)
    rows = zip(*found.to_pydict().values(), strict=True)
    wanted = con.execute("SELECT R.id, count(*) FROM R JOIN S ON R.i = S.i GROUP BY R.id").fetchall()
    assert sorted(row for row in rows if row[1]) == sorted(wanted)


def test_the_check_notices_a_wrong_result(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE OR REPLACE TEMP TABLE kept AS SELECT * FROM S")
    try:
        con.execute("UPDATE S SET i = 99 WHERE i = 2")
        with pytest.raises(AssertionError, match=r"R\.i = S\.i"):
            check(con, ["SELECT R.id, S.id FROM R JOIN S ON R.i = S.i"])
    finally:
        con.execute("DELETE FROM S")
        con.execute("INSERT INTO S SELECT * FROM kept")
