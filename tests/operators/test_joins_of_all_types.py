"""Joins on columns of every type that compares, on every engine, against Python's own comparison of the values."""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from operators import CountWindow, HandshakeJoin, IndexJoin, PanJoin, ScaleJoin, SplitJoin, SPOJoin, StreamJoin
from operators.query.expressions import Compare
from operators.query.streams import stream
from tests.operators.types_of_keys import TYPES
from topology import SchemaError

R, S = stream("R"), stream("S")
ENGINES: list[Callable[[], Any]] = [SPOJoin, IndexJoin, SplitJoin, PanJoin, HandshakeJoin, ScaleJoin]
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip

GROUPS = [
    ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "float16", "float32", "float64"],
    ["decimal32", "decimal64", "decimal128", "int64", "uint64", "bool"],
    ["decimal128", "long decimal", "longer decimal"],
    ["date32", "date64", "timestamp s", "timestamp ms", "timestamp us", "timestamp ns"],
    ["zoned", "zoned elsewhere"],
    ["time32", "time64"],
    ["duration s", "duration ns"],
    ["string", "large_string", "string_view", "dictionary"],
    ["binary", "large_binary", "fixed_size_binary"],
]
PAIRS = [(left, right) for group in GROUPS for left in group for right in group]


def table(random_: random.Random, name: str, rows: int) -> tuple[pa.Table, list[Any]]:
    kind, pool = TYPES[name]
    cells = [random_.choice([None, *pool]) for _ in range(rows)]
    return pa.table({"n": pa.array(range(rows)), "k": pa.array(cells, kind)}), cells


def comparable(value: Any) -> Any:
    """Dates as midnights, so that Python compares them with timestamps."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value


def matches(sign: str, left: Any, right: Any) -> bool:
    if left is None or right is None or left != left or right != right:
        return False
    return COMPARE[sign](comparable(left), comparable(right))


@pytest.mark.parametrize("pair", PAIRS, ids=" - ".join)
def test_columns_of_all_types_join_by_value(pair: tuple[str, str]) -> None:
    random_ = random.Random(" ".join(pair))
    left, lefts = table(random_, pair[0], 30)
    right, rights = table(random_, pair[1], 30)
    for sign in random_.sample(list(COMPARE), 2):
        engine = ENGINES[random_.randrange(len(ENGINES))]
        on = Compare(sign, R.k, S.k)  # type: ignore[arg-type]
        join = StreamJoin("R", "S", on, CountWindow(100), select=["R.n", "S.n"], using=engine())
        found = join.collect({"R": left, "S": right})
        pairs = sorted(zip(found["R.n"].to_pylist(), found["S.n"].to_pylist(), strict=True))
        expected = [(r, s) for r in range(30) for s in range(30) if matches(sign, lefts[r], rights[s])]
        assert pairs == expected, (sign, engine)


ONE_OF_EACH = ["int32", "uint64", "bool", "float32", "decimal64", "long decimal", "date32", "timestamp us", "zoned"]
ONE_OF_EACH += ["time32", "duration s", "string", "binary"]
COMPARABLE = [*GROUPS, ["int32", "decimal64"], ["decimal64", "long decimal"]]
STRANGERS = [
    (left, right)
    for left in ONE_OF_EACH
    for right in ONE_OF_EACH
    if not any(left in group and right in group for group in COMPARABLE)
]


@pytest.mark.parametrize("pair", STRANGERS, ids=" - ".join)
def test_types_that_do_not_compare_are_refused_with_both_types_and_the_cast(pair: tuple[str, str]) -> None:
    tables = [table(random.Random(0), name, 3)[0] for name in pair]
    for on in (R.k == S.k, (R.k < S.k) & (R.n == S.n), ~((R.n > S.n) & (R.k >= S.k))):
        join = StreamJoin("R", "S", on, CountWindow(100))
        with pytest.raises(SchemaError) as caught:
            join.collect({"R": tables[0], "S": tables[1]})
        message = str(caught.value)
        assert all(str(each.schema.field("k").type) in message for each in tables)
        if "compare the difference" not in message:
            written = re.search(r'(pc\.assume_timezone\()?table\["k"\][^;,]*(, [^;,]*\))?', message)
            role = re.search(r"(cast|give) ([RS])\.k", message)
            assert written is not None, message
            meant = tables if role is None else [tables["RS".index(role[2])]]
            assert any(is_a_cast(written[0], each) for each in meant), message


def is_a_cast(written: str, table: pa.Table) -> bool:
    """Whether Arrow knows a cast that a message says to write, for a column of a table."""
    try:
        eval(written, {"table": table.slice(0, 0), "pa": pa, "pc": pc})  # noqa: S307
    except pa.ArrowNotImplementedError:
        return False
    return True
