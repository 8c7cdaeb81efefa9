"""Queries through `StreamJoin` beside DuckDB: one text, the same tables, the same rows.

Over windows that keep every row (or that an interval join needs) a streaming join gives the rows of the plain SQL join,
whatever the kind. NaN is left out, which DuckDB holds equal to itself; so are bands of timestamps, since DuckDB has no
absolute value of an interval.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from operators import Engine, StreamJoin, UnboundedWindow
from tests import oracle_terms as term
from tests.comparison import rows_of
from tests.key_families import BINARIES, DECIMALS, INSTANTS, INTEGERS, STRINGS, Family, column
from tests.operators.surface_check import ENGINES, sampled
from tests.random_conditions import Slot, conditions, uses_functions
from tests.sql_spelling import as_sql, without_intervals

pytestmark = pytest.mark.filterwarnings("ignore::operators.UnboundedStateWarning")

KIND_OF_JOIN = ["JOIN", "LEFT JOIN", "RIGHT OUTER JOIN", "FULL OUTER JOIN", "SEMI JOIN", "ANTI JOIN"]
START = datetime(2024, 2, 28, 23, 50)


def _some(chance: random.Random, values: list[Any], count: int) -> list[Any]:
    return [chance.choice(values) if chance.random() < 0.9 else None for _ in range(count)]


def _table(seed: int, count: int, wide: bool) -> pa.Table:
    """Columns of many types; the two streams have different ones, where types mix."""
    chance = random.Random(seed)
    texts = ["", "a", "A", "ab", "aaaaaaaa", "aaaaaaaab", "é", "it's", "Zoë"]
    prices = [Decimal(cents) / 100 for cents in range(95, 112)]
    minutes = sorted(chance.sample(range(3 * count), count))
    moments = [START + timedelta(minutes=2 * minute + wide) for minute in minutes]
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "ts": pa.array(moments, pa.timestamp("us")),
            "i": pa.array(_some(chance, list(range(-3, 9)), count), pa.int64() if wide else pa.int16()),
            "u": pa.array(_some(chance, list(range(5)), count), pa.uint32() if wide else pa.int8()),
            "x": pa.array(_some(chance, [n / 4 for n in range(-6, 7)], count), pa.float64() if wide else pa.float32()),
            "price": pa.array(_some(chance, prices, count), pa.decimal128(12, 2) if wide else pa.decimal128(7, 3)),
            "text": pa.array(_some(chance, texts, count), pa.large_string() if wide else pa.string()),
            "raw": pa.array(_some(chance, [text.encode() for text in texts], count), pa.binary()),
            "day": pa.array([moment.date() for moment in moments], pa.date32()),
            "flag": pa.array(_some(chance, [True, False], count), pa.bool_()),
        }
    )


R, S = _table(1, 120, wide=False), _table(2, 90, wide=True)

CONDITIONS = [
    # one or two comparisons
    "R.i = S.i",
    "R.i < S.i AND R.x > S.x",
    "R.i + 2 < 3 * S.i",
    "abs(R.x - S.x) <= 0.25",
    "R.i BETWEEN S.i - 1 AND S.i + 1",
    "R.i != S.i AND R.u = S.u",
    "R.i = S.i AND R.x < S.x AND R.price >= S.price AND R.u <> S.u",
    # OR, NOT, IN, NULL
    "R.i = S.i OR R.text = S.text",
    "R.i = S.i AND (R.x < S.x OR R.price < S.price)",
    "(R.i < S.i AND R.u = 1) OR (R.i > S.i AND S.u IN (2, 3)) OR R.price = S.price",
    "NOT (R.i < S.i OR R.x >= S.x)",
    "NOT (R.i = S.i AND R.u = S.u)",
    "R.i = S.i AND R.u NOT IN (1, 2)",
    "R.i = S.i AND R.text IN ('a', 'it''s') AND S.text IS NOT NULL",
    "R.i IS NULL AND S.i IS NULL",
    "R.i IS NULL OR R.i = S.i",
    "R.i IS NOT NULL AND NOT (R.i BETWEEN S.i AND S.u)",
    "R.x = 1 AND S.x = 1",
    # what no index can search by
    "R.i * S.i = 6",
    "R.i + R.u = S.i AND R.x < S.x",
    "abs(R.i) > S.u + 2",
    "abs(R.i - S.i) > 4",
    # types
    "R.text = S.text",
    "R.text < S.text AND R.i = S.i",
    "R.text BETWEEN S.text AND 'b' AND R.u = S.u",
    "R.raw >= S.raw AND R.u = S.u",
    "R.price = S.price",
    "R.price < S.price AND R.price > 1.01",
    "R.price + 0.05 >= S.price AND R.i = S.i",
    "abs(R.price - S.price) <= 0.02",
    "R.price > S.u",
    "R.u = S.x",
    "R.x = S.u AND R.flag = S.flag",
    "R.flag = TRUE AND S.flag = FALSE AND R.i = S.i",
    "R.day = S.day AND R.i = S.i",
    "R.day <= S.ts AND R.i = S.i AND S.u = 2",
    "R.ts < S.ts AND S.ts < TIMESTAMP '2024-02-29 02:30:00' AND R.i = S.i",
    "R.day = DATE '2024-02-29' AND R.i = S.i",
    "R.ts + INTERVAL '30' MINUTE < S.ts AND R.text = S.text",
]


def duckdb_rows(query: str, tables: dict[str, pa.Table]) -> Counter[tuple[Any, ...]]:
    con = duckdb.connect(config={"threads": 1})
    try:
        for name, table in tables.items():
            con.register(f"{name}_rows", table)
            con.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_rows")
        return Counter(rows_of(con.sql(query).to_arrow_table()))
    finally:
        con.close()


def our_rows(query: str, tables: dict[str, pa.Table], engine: Engine | None = None, **options: Any) -> pa.Table:
    join = StreamJoin.from_sql(query, using=engine or "auto", step_rows=50, **options)
    return join.collect({name: tables[name] for name in join.stream_names})


def assert_as_duckdb(query: str, engine: Engine | None = None, **options: Any) -> int:
    """The rows of a query are DuckDB's, each as often; returns how many there are."""
    tables = {"R": R, "S": S}
    want = duckdb_rows(query, tables)
    got = Counter(rows_of(our_rows(query, tables, engine, **options)))
    assert got == want, f"{query}\n  missing: {(want - got).most_common(5)}\n  too many: {(got - want).most_common(5)}"
    return want.total()


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_mean_what_they_mean_in_sql(condition: str) -> None:
    chance = random.Random(condition)  # another engine and another kind for each
    engine = ENGINES[chance.choice(list(ENGINES))](2)
    found = assert_as_duckdb(
        f"SELECT R.id, S.id FROM R JOIN S ON {condition}", engine, window=UnboundedWindow(), event_time="ts"
    )
    assert 0 < found < R.num_rows * S.num_rows
    kind = chance.choice(KIND_OF_JOIN[1:])
    shown = "R.id" if kind in ("SEMI JOIN", "ANTI JOIN") else "R.id, S.id, S.text"
    query = f"SELECT {shown} FROM R {kind} S ON {condition}"
    assert_as_duckdb(query, engine, window=UnboundedWindow(), event_time="ts")


@pytest.mark.parametrize("kind", KIND_OF_JOIN)
@pytest.mark.parametrize(
    "condition",
    [
        "R.i = S.i AND R.x < S.x",
        "R.text = S.text AND R.u > 2 AND S.flag",
        "R.price > S.price + 0.1 OR R.i = -3 AND S.i = 8",
    ],
)
def test_kinds_mean_what_they_mean_in_sql(kind: str, condition: str) -> None:
    shown = "*" if kind not in ("SEMI JOIN", "ANTI JOIN") else "R.id, R.text"
    query = f"SELECT {shown} FROM R {kind} S ON {condition}"
    assert assert_as_duckdb(query, window=UnboundedWindow(), event_time="ts") > 0


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN"])
def test_where_on_the_left_stream_is_the_filter_of_sql(kind: str) -> None:
    query = f"SELECT R.id FROM R {kind} S ON R.i = S.i AND R.u < S.u WHERE R.flag AND R.price IS NOT NULL"
    assert assert_as_duckdb(query, window=UnboundedWindow(), event_time="ts") > 0


@pytest.mark.parametrize("kind", KIND_OF_JOIN)
@pytest.mark.parametrize(
    ("before", "after"), [("'30' MINUTE", "'5' MINUTE"), ("'0' MINUTE", "'1' HOUR"), ("'3' HOUR", "'0' SECOND")]
)
def test_interval_joins_are_those_of_sql(kind: str, before: str, after: str) -> None:
    shown = "R.id" if kind in ("SEMI JOIN", "ANTI JOIN") else "R.id, S.id"
    between = f"R.ts BETWEEN S.ts - INTERVAL {before} AND S.ts + INTERVAL {after}"
    query = f"SELECT {shown} FROM R {kind} S ON {between} AND R.u = S.u"
    assert assert_as_duckdb(query, event_time="ts") > 0


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_gives_the_rows_of_sql(name: str) -> None:
    query = "SELECT R.id, S.id FROM R FULL JOIN S ON R.text <= S.text AND (R.i = S.i OR R.price = S.price)"
    assert assert_as_duckdb(query, ENGINES[name](3), window=UnboundedWindow(), event_time="ts") > 0


def test_a_self_join_gives_the_pairs_of_different_rows() -> None:
    ours = our_rows("SELECT a.id, b.id FROM R AS a JOIN R AS b ON a.i < b.i AND a.text = b.text", {"R": R},
                    window=UnboundedWindow(), event_time="ts")  # fmt: skip
    query = "SELECT a.id, b.id FROM R AS a JOIN R AS b ON a.i < b.i AND a.text = b.text WHERE a.id != b.id"
    assert Counter(rows_of(ours)) == duckdb_rows(query, {"R": R})


def test_computed_columns_are_those_of_sql() -> None:
    query = (
        "SELECT R.id, R.i * 2 + 1 AS more, S.x / 4 AS quarter, R.i < S.i AS less, R.price, S.ts - R.ts AS delay "
        "FROM R JOIN S ON R.u = S.u AND R.i = S.i"
    )
    ours = our_rows(query, {"R": R, "S": S}, window=UnboundedWindow(), event_time="ts")
    con = duckdb.connect()
    con.register("R", R)
    con.register("S", S)
    want = con.sql(query.replace("S.ts - R.ts AS delay", "epoch_us(S.ts) - epoch_us(R.ts) AS delay")).fetchall()
    got = zip(*[ours[name].to_pylist() for name in ours.column_names[:-1]],
              ours["delay"].cast(pa.duration("us")).cast(pa.int64()).to_pylist(), strict=True)  # fmt: skip
    assert Counter(got) == Counter(want)


def test_counts_are_the_numbers_of_earlier_partners() -> None:
    condition = "R.u = S.u AND R.i <= S.i"
    ours = our_rows(f"SELECT R.id, S.id, COUNT(*) AS matches FROM R JOIN S ON {condition}", {"R": R, "S": S},
                    window=UnboundedWindow(), event_time="ts")  # fmt: skip
    query = (
        f"SELECT R.id, NULL::BIGINT, (SELECT count(*) FROM S WHERE {condition} AND S.ts < R.ts) FROM R UNION ALL "
        f"SELECT NULL::BIGINT, S.id, (SELECT count(*) FROM R WHERE {condition} AND R.ts < S.ts) FROM S"
    )
    assert Counter(rows_of(ours)) == duckdb_rows(query, {"R": R, "S": S})


def test_overlapping_intervals_are_those_of_the_comparisons() -> None:
    query = "SELECT R.id, S.id FROM R JOIN S ON {} AND R.u = S.u"
    ours = our_rows(query.format("(R.i, R.x) OVERLAPS (S.x, S.i)"), {"R": R, "S": S}, window=UnboundedWindow())
    compared = "R.i < S.i AND S.x < R.x AND R.i < R.x AND S.x < S.i"
    assert Counter(rows_of(ours)) == duckdb_rows(query.format(compared), {"R": R, "S": S})
    assert len(ours)


@pytest.mark.parametrize(
    ("written", "compared"),
    [
        ("(R.i, S.i) CONTAINS R.x", "R.i <= R.x AND R.x < S.i"),
        ("PERIOD (R.i, S.i) CONTAINS PERIOD (S.x, R.x)", "R.i <= S.x AND R.x <= S.i AND S.x < R.x"),
    ],
)
def test_intervals_contain_what_the_comparisons_say(written: str, compared: str) -> None:
    query = "SELECT R.id, S.id FROM R JOIN S ON {} AND R.u = S.u"
    ours = our_rows(query.format(written), {"R": R, "S": S}, window=UnboundedWindow())
    assert Counter(rows_of(ours)) == duckdb_rows(query.format(compared), {"R": R, "S": S})
    assert len(ours)


def test_aggregates_are_those_of_the_earlier_partners() -> None:
    condition = "R.u = S.u AND R.i <= S.i"
    ours = our_rows(
        "SELECT R.id, count(*), count(S.x), sum(S.i), sum(S.price), min(S.text), max(S.day), avg(S.i), "
        f"sum(S.i * 2 + 1) FROM R JOIN S ON {condition} GROUP BY R",
        {"R": R, "S": S}, window=UnboundedWindow(), event_time="ts",
    )  # fmt: skip
    query = (
        "SELECT R.id, count(S.id), count(S.x), sum(S.i), sum(S.price), min(S.text), max(S.day), avg(S.i), "
        f"sum(S.i * 2 + 1) FROM R LEFT JOIN S ON {condition} AND S.ts < R.ts GROUP BY R.id"
    )
    assert Counter(rows_of(ours)) == duckdb_rows(query, {"R": R, "S": S})


def test_aggregates_over_intervals_include_later_rows() -> None:
    condition = "R.u = S.u AND S.ts BETWEEN R.ts - INTERVAL '1' HOUR AND R.ts + INTERVAL '90' MINUTE"
    ours = our_rows(
        f"SELECT R.id, count(*), sum(S.price), max(S.i) FROM R JOIN S ON {condition} GROUP BY R", {"R": R, "S": S},
        event_time="ts",
    )  # fmt: skip
    query = f"SELECT R.id, count(S.id), sum(S.price), max(S.i) FROM R LEFT JOIN S ON {condition} GROUP BY R.id"
    assert Counter(rows_of(ours)) == duckdb_rows(query, {"R": R, "S": S})


# --- random conditions ----------------------------------------------------------------------------

# Types whose arithmetic DuckDB does exactly and as we do: unsigned ones overflow there, booleans do not compute.
_SIGNED = Family(
    "signed", "numbers", tuple(kind for kind in INTEGERS.types if pa.types.is_signed_integer(kind)),
    INTEGERS.values, INTEGERS.constants, INTEGERS.shifts,
)  # fmt: skip
_EXACT = Family(
    "decimals", "decimals", (pa.decimal128(5, 2), pa.decimal128(10, 1), pa.int32()), DECIMALS.values,
    (Decimal("0.1"), 1, 0), (Decimal("0.1"), 1, -2),
)  # fmt: skip
_MOMENTS = Family("moments", "none", (pa.timestamp("us"), pa.timestamp("s"), pa.date32()), INSTANTS.values,
                  INSTANTS.constants)  # fmt: skip
_TEXTS = Family("texts", "none", (pa.string(), pa.large_string()), STRINGS.values, STRINGS.constants)


@st.composite
def tables_and_conditions(draw: st.DrawFn) -> tuple[dict[str, pa.Table], term.Condition]:
    chance = random.Random(draw(st.integers(0, 2**32 - 1)))
    families = [_SIGNED, _EXACT, _MOMENTS, _TEXTS, BINARIES]
    slots = tuple(Slot(name, chance.choice(families)) for name in "pq"[: chance.randint(1, 2)])
    tables = {}
    for stream in ("R", "S"):
        rows = chance.randint(5, 25)
        columns = {"id": pa.array(range(rows), pa.int64())}
        for slot in slots:
            kind = chance.choice(slot.family.types)
            columns[slot.name] = column(_some(chance, slot.family.pool(kind, False)[:8], rows), kind)
        tables[stream] = pa.table(columns)
    condition = draw(conditions(slots))
    assume(not uses_functions(condition))
    return tables, condition


@settings(sampled, max_examples=40)
@given(tables_and_conditions(), st.sampled_from(KIND_OF_JOIN), st.sampled_from(list(ENGINES)))
def test_random_queries_give_the_rows_of_sql(
    drawn: tuple[dict[str, pa.Table], term.Condition], kind: str, name: str
) -> None:
    tables, condition = drawn
    shown = "R.id" if kind in ("SEMI JOIN", "ANTI JOIN") else "R.id, S.id"
    query = f"SELECT {shown} FROM R {kind} S ON "
    ours = our_rows(query + as_sql(condition, ("R", "S")), tables, ENGINES[name](2), window=UnboundedWindow())
    query += as_sql(without_intervals(condition), ("R", "S"))
    assert Counter(rows_of(ours)) == duckdb_rows(query, tables), query
