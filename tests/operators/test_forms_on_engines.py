"""Every form of SQL beyond a comparison of columns, on every engine: drawn, combined, judged by the oracle.

A form is SQL text, and what it means for two rows in plain Python. Rows hold None where they hold nothing.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from operators import CountWindow, StreamJoin, TimeWindow, UnboundedWindow
from tests.comparison import assert_same_result
from tests.operators.surface_check import ENGINES
from tests.oracle import Count, Kind, Time, Unbounded, oracle
from tests.oracle import Window as OracleWindow
from tests.oracle_terms import Truth

pytestmark = pytest.mark.filterwarnings("ignore::operators.UnboundedStateWarning")

Row = dict[str, Any]
Meaning = Callable[[Row, Row], Truth]


def strict(left: str, right: str, holds: Callable[[Any, Any], Any]) -> Meaning:
    """Unknown where a value is missing; `holds` may return None as well."""

    def truth(one: Row, other: Row) -> Truth:
        if one[left] is None or other[right] is None:
            return None
        found = holds(one[left], other[right])
        return None if found is None else bool(found)

    return truth


def every(truths: list[Truth]) -> Truth:
    return False if False in truths else None if None in truths else True


def some(truths: list[Truth]) -> Truth:
    return True if True in truths else None if None in truths else False


def compared(holds: Callable[[Any, Any], bool], one: Any, other: Any) -> Truth:
    return None if one is None or other is None else holds(one, other)


def rows_equal(one: Row, other: Row) -> Truth:
    return every([compared(operator.eq, one[name], other[name]) for name in ("i", "t")])


def rows_less(one: Row, other: Row) -> Truth:
    equal = compared(operator.eq, one["i"], other["i"])
    return some([compared(operator.lt, one["i"], other["i"]),
                 every([equal, compared(operator.lt, one["t"], other["t"])])])  # fmt: skip


def chosen(one: Row, other: Row) -> Truth:
    if compared(operator.gt, one["i"], other["i"]):
        return bool(one["i"] == 2)
    return False if one["i"] is None else compared(operator.eq, other["i"], 2)


def month_later(day: date) -> date:
    year, month = (day.year + 1, 1) if day.month == 12 else (day.year, day.month + 1)
    following = date(year + (month == 12), month % 12 + 1, 1)
    return date(year, month, min(day.day, (following - timedelta(days=1)).day))


FORMS: dict[str, Meaning] = {
    "R.t LIKE S.t || '%'": strict("t", "t", str.startswith),
    "R.t NOT LIKE '%' || S.t": strict("t", "t", lambda one, other: not one.endswith(other)),
    "R.t ILIKE '_' || S.t": strict("t", "t", lambda one, other: one != "" and one[1:].lower() == other.lower()),
    "R.t || S.t = 'ab'": strict("t", "t", lambda one, other: one + other == "ab"),
    "R.i % 3 = S.i % 3": strict("i", "i", lambda one, other: math.fmod(one, 3) == math.fmod(other, 3)),
    "R.i % S.i = 1": strict("i", "i", lambda one, other: None if other == 0 else math.fmod(one, other) == 1),
    "R.i // 2 = S.i": strict("i", "i", lambda one, other: int(one / 2) == other),
    "R.i ^ 2 = S.i": strict("i", "i", lambda one, other: one * one == other),
    "(R.i & 3) = (S.i | 1)": strict("i", "i", lambda one, other: one & 3 == other | 1),
    "xor(R.i, S.i) = 1": strict("i", "i", lambda one, other: one ^ other == 1),
    "~R.i < S.i << 1": strict("i", "i", lambda one, other: ~one < other << 1),
    "CASE WHEN R.i > S.i THEN R.i WHEN R.i IS NULL THEN 0 ELSE S.i END = 2": chosen,
    "CASE R.i WHEN 1 THEN 'a' WHEN 2 THEN 'b' END = S.t": strict(
        "i", "t", lambda one, other: None if one not in (1, 2) else "?ab"[one] == other
    ),
    "CAST(R.i AS VARCHAR) = S.t": strict("i", "t", lambda one, other: str(one) == other),
    "TRY_CAST(R.t AS INTEGER) = S.i": strict("t", "i", lambda one, other: int(one) == other if one == "1" else None),
    "CAST(R.i AS DOUBLE) / 2 < S.i": strict("i", "i", lambda one, other: one / 2 < other),
    "CAST(R.at AS DATE) = S.d": strict("at", "d", lambda one, other: one.date() == other),
    "year(R.d) = year(S.d)": strict("d", "d", lambda one, other: one.year == other.year),
    "extract(hour FROM R.at) = S.i": strict("at", "i", lambda one, other: one.hour == other),
    "date_trunc('month', R.at) = date_trunc('month', S.at)": strict(
        "at", "at", lambda one, other: (one.year, one.month) == (other.year, other.month)
    ),
    "R.d + INTERVAL '1' MONTH >= S.d": strict("d", "d", lambda one, other: month_later(one) >= other),
    "R.d - S.d BETWEEN 0 AND 30": strict("d", "d", lambda one, other: 0 <= (one - other).days <= 30),
    "(R.i, R.t) = (S.i, S.t)": rows_equal,
    "(R.i, R.t) < (S.i, S.t)": rows_less,
    "R.i IS NOT DISTINCT FROM S.i": lambda one, other: bool(one["i"] == other["i"]),
    "R.l IS DISTINCT FROM S.l": lambda one, other: bool(one["l"] != other["l"]),
    "coalesce(R.i, S.i, 0) = 2": lambda one, other: next((i for i in (one["i"], other["i"]) if i is not None), 0) == 2,
    "R.l = S.l": strict("l", "l", operator.eq),
    "len(R.l) > len(S.l)": strict("l", "l", lambda one, other: len(one) > len(other)),
    "list_contains(R.l, S.i)": strict("l", "i", lambda one, other: other in one),
    "R.l[1] = S.i": strict("l", "i", lambda one, other: compared(operator.eq, one[0] if one else None, other)),
    "[R.i, S.i] = [1, 2]": lambda one, other: [one["i"], other["i"]] == [1, 2],
    "R.st = S.st": strict("st", "st", operator.eq),
    "R.st.a = S.i": strict("st", "i", lambda one, other: compared(operator.eq, one["a"], other)),
}
KINDS: tuple[Kind, ...] = ("inner", "inner", "left", "full", "semi", "anti", "count")


def table(chance: Random, rows: int, first: int) -> pa.Table:
    def drawn(*values: Any) -> list[Any]:
        return [chance.choice([None, *values, *values]) for _ in range(rows)]

    days = [date(2024, 1, 31), date(2024, 2, 29), date(2024, 3, 1), date(2023, 12, 31), date(2024, 2, 28)]
    times = [datetime(2024, 2, 29, 1), datetime(2024, 2, 28, 2, 30), datetime(2024, 1, 31), datetime(2024, 3, 1, 1)]
    structs = [{"a": 1, "b": "x"}, {"a": None, "b": "x"}, {"a": 2, "b": None}]
    return pa.table(
        {
            "id": pa.array(range(first, first + rows), pa.int64()),
            "i": pa.array(drawn(-3, -1, 0, 1, 2, 3), pa.int64()),
            "t": pa.array(drawn("", "a", "b", "ab", "Ab", "1", "xa"), pa.string()),
            "d": pa.array(drawn(*days), pa.date32()),
            "at": pa.array(drawn(*times), pa.timestamp("us")),
            "l": pa.array(drawn([], [1], [1, 2], [None, 2], [2]), pa.list_(pa.int64())),
            "st": pa.array(drawn(*structs), pa.struct([("a", pa.int64()), ("b", pa.string())])),
        }
    )


def combined(chance: Random, first: str) -> tuple[str, Meaning]:
    """A form, alone or with others."""
    texts = [first, *chance.sample(sorted(FORMS), chance.choice([0, 0, 1, 2]))]
    meanings = [FORMS[text] for text in texts]
    sql = [f"({text})" for text in texts]
    shape = chance.choice(["AND", "AND", "OR", "AND NOT"])
    if shape == "OR":
        return " OR ".join(sql), lambda one, other: some([each(one, other) for each in meanings])
    if shape == "AND" or len(texts) == 1:
        return " AND ".join(sql), lambda one, other: every([each(one, other) for each in meanings])

    def truth(one: Row, other: Row) -> Truth:
        first_truth, *others = (each(one, other) for each in meanings)
        return every([first_truth, *(None if each is None else not each for each in others)])

    return " AND NOT ".join(sql), truth


def check(seed: int, form: str, engine: str) -> None:
    chance = Random(seed)
    sql, truth = combined(chance, form)
    sources = {stream: {stream: table(chance, chance.randint(3, 11), first)} for stream, first in (("R", 0), ("S", 50))}
    size = chance.randint(2, 9)
    windows: list[tuple[OracleWindow, CountWindow | TimeWindow | UnboundedWindow]] = [
        (Count(size), CountWindow(size)),
        (Time(size), TimeWindow(size)),
        (Unbounded(), UnboundedWindow()),
    ]
    theirs, ours = chance.choice(windows)
    kind = chance.choice(KINDS)
    select = ["R.id"] if kind in ("semi", "anti") else ["R.id", "S.id"]

    def matches(one: Row, other: Row) -> bool:
        return truth(one, other) is True

    expected = oracle(sources, ("R", "R"), ("S", "S"), matches, (theirs, theirs), None, select, kind)
    join = StreamJoin(
        "R", "S", sql, ours, kind=kind, select=select, using=ENGINES[engine](2), step_rows=chance.randint(1, 9)
    )
    try:
        assert_same_result(join.collect(sources), expected.table)
    except AssertionError as error:
        error.add_note(f"check({seed}, {form!r}, {engine!r}): {kind} {ours} {sql}")
        raise


@pytest.mark.parametrize("engine", ENGINES)
def test_forms_mean_the_same_on_every_engine(engine: str) -> None:
    chance = Random(engine)
    for form in chance.sample(sorted(FORMS), 9):
        check(chance.randrange(1 << 20), form, engine)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_on_every_engine(engine: str, form: str) -> None:
    for seed in range(12):
        check(seed, form, engine)
