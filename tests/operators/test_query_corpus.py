# ruff: noqa: E501 - one entry of a table is one line
"""The corpus of join queries beside DuckDB: under 3 % are refused, none is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from typing import Any

import duckdb
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


@pytest.mark.parametrize(
    ("refused", "instead"),
    [
        ("SELECT R.id FROM R WHERE EXISTS (SELECT 1 FROM S WHERE R.i = S.i)", "SELECT R.id FROM R SEMI JOIN S ON R.i = S.i"),
        ("SELECT R.id, S.id FROM R JOIN S ON (R.i > 1) != (S.i > 1)", "SELECT R.id, S.id FROM R JOIN S ON (R.i > 1) != (S.i > 1)"),
        ("SELECT R.id, S.id FROM R JOIN S ON R.t SIMILAR TO 'a|b'", "SELECT R.id, S.id FROM R JOIN S ON regexp_matches(R.t, '^(a|b)$')"),
        ("SELECT R.id, S.id FROM R JOIN S ON R.i = '1'", "SELECT R.id, S.id FROM R JOIN S ON R.i = 1"),
        ("SELECT R.id, S.id FROM R JOIN S ON R.l = []", "SELECT R.id, S.id FROM R JOIN S ON len(R.l) = 0"),
        ("SELECT R.id, S.id FROM R JOIN S ON R.st = {'a': 1, 'b': 'x'}", "SELECT R.id, S.id FROM R JOIN S ON R.st.a = 1 AND R.st.b = 'x'"),
    ],
)  # fmt: skip
def test_what_a_refusal_says_to_write_means_the_same(
    con: duckdb.DuckDBPyConnection, refused: str, instead: str
) -> None:
    assert joined(instead) == counted(con.execute(refused).fetchall())


def test_the_check_notices_a_wrong_result(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE OR REPLACE TEMP TABLE kept AS SELECT * FROM S")
    try:
        con.execute("UPDATE S SET i = 99 WHERE i = 2")
        with pytest.raises(AssertionError, match=r"R\.i = S\.i"):
            check(con, ["SELECT R.id, S.id FROM R JOIN S ON R.i = S.i"])
    finally:
        con.execute("DELETE FROM S")
        con.execute("INSERT INTO S SELECT * FROM kept")
