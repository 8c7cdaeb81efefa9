"""Every built-in function beside its meaning in plain Python, row by row, with nulls, NaN and values at the edges."""

from __future__ import annotations

import itertools
import math
import random
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from operators.functions.arguments import ArgumentError
from operators.functions.builtins import BUILTINS, builtin_named, similar_names
from operators.query.expressions import Apply, Column, Constant, Expression
from operators.values.evaluation import evaluate
from tests.oracle_functions import FUNCTIONS

INTS = pa.array([0, 1, -1, 2, 3, 7, -25, 25, 149, 150, 2**53 + 1, 2**63 - 1, -(2**63), None], pa.int64())
SMALL = pa.array([0, 1, -1, 2, 3, -2, 63, 64, None], pa.int64())
FLOATS = pa.array(
    [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 2.675, 1e300, math.inf, -math.inf, math.nan, 1e-320,
     None]
)  # fmt: skip
DECIMALS = pa.array([*map(Decimal, ("0.00", "1.25", "-1.25", "1.35", "2.50", "-99.99")), None], pa.decimal128(6, 2))
TEXTS = pa.array(["", "a", "A", "ab", "äöü", "ÄB", " a ", "xxaxx", "100%", "a_b", "aaa", "a\nb", None])
PARTS = pa.array(["", "a", "A", "x", "ä", "%", None])
PATTERNS = pa.array(["", "%", "a%", "_", "%b", "A_", "a!_b", "100!%", "%ä%", ".", "a\n%", None])
DAYS = pa.array([date(2024, 1, 31), date(2024, 2, 29), date(1969, 12, 31), date(2023, 3, 1), date(2025, 12, 29), None])
TIMES = pa.array(
    [datetime(2024, 1, 31, 23, 59, 59, 999_999), datetime(1969, 12, 31, 0, 0, 1), datetime(2021, 1, 3, 4, 5, 6, 70_008),
     datetime(2024, 2, 29), None],
    pa.timestamp("us"),
)  # fmt: skip
ZONED = pa.array([0, 5, -5, None], pa.timestamp("ms", "Asia/Tokyo"))
PAIRS = pa.array([[1, 2], None, [3, None]], pa.list_(pa.int8(), 2))
LISTS = pa.array([[], [1], [1, None], [3, 2, 1], None], pa.list_(pa.int64()))
STRUCTS = pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None])
BINARIES = pa.array([b"", b"a\x00", b"\xff", None])

Argument = Any  # a column, or a constant
CASES: list[tuple[str, tuple[Argument, ...]]] = [
    *[(name, (column,)) for name in ("round", "trunc", "floor", "ceil", "sign") for column in (INTS, FLOATS, DECIMALS)],
    *[(name, (column, digits)) for name in ("round", "trunc") for column in (INTS, FLOATS, DECIMALS)
      for digits in (-1, 1, 2)],
    *[(name, (column,)) for name in ("sqrt", "exp", "ln", "log10", "log2") for column in (SMALL, FLOATS)],
    ("power", (SMALL, SMALL)), ("power", (FLOATS, SMALL)),
    ("%", (INTS, SMALL)), ("%", (FLOATS, FLOATS)), ("%", (DECIMALS, DECIMALS)), ("%", (DECIMALS, 3)),
    ("div", (INTS, SMALL)), ("&", (INTS, SMALL)), ("|", (INTS, SMALL)), ("xor", (INTS, SMALL)), ("~", (INTS,)),
    ("<<", (SMALL, SMALL)), (">>", (INTS, SMALL)),
    *[(name, (TEXTS,)) for name in ("lower", "upper", "length", "octet_length", "reverse", "trim", "ltrim", "rtrim")],
    *[(name, (TEXTS, PARTS)) for name in ("trim", "ltrim", "rtrim", "strpos", "starts_with", "ends_with", "contains",
                                          "||", "concat")],
    ("octet_length", (BINARIES,)), ("length", (BINARIES,)), ("length", (LISTS,)), ("||", (BINARIES, BINARIES)),
    ("substring", (TEXTS, SMALL)), ("substring", (TEXTS, SMALL, SMALL)), ("left", (TEXTS, SMALL)),
    ("right", (TEXTS, SMALL)), ("replace", (TEXTS, PARTS, PARTS)), ("repeat", (TEXTS, SMALL)),
    ("lpad", (TEXTS, SMALL)), ("lpad", (TEXTS, 4, PARTS)), ("rpad", (TEXTS, SMALL, "xy")),
    ("like", (TEXTS, PATTERNS)), ("ilike", (TEXTS, PATTERNS)), ("like", (TEXTS, PATTERNS, "!")),
    ("regexp_matches", (TEXTS, "^a|ä")), ("concat", (TEXTS, "-", PARTS)),
    *[(name, (column,)) for name in ("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "epoch")
      for column in (DAYS, TIMES)],
    *[(name, (TIMES,)) for name in ("hour", "minute", "second")],
    *[("date_part", (name, TIMES)) for name in ("isoyear", "millisecond", "microsecond", "week")],
    *[("date_trunc", (unit, column)) for unit in ("year", "quarter", "month", "week", "day", "hour", "second")
      for column in (DAYS, TIMES)],
    *[("date_diff", (unit, DAYS, TIMES)) for unit in ("year", "quarter", "month", "week", "day", "hour", "second")],
    ("add_months", (DAYS, SMALL)), ("add_months", (TIMES, SMALL)),
    ("coalesce", (SMALL, INTS)), ("coalesce", (TEXTS, "-")), ("coalesce", (DECIMALS, 7)), ("coalesce", (FLOATS, SMALL)),
    ("coalesce", (TIMES, DAYS)), ("coalesce", (FLOATS, INTS)),
    ("least", (FLOATS, INTS)), ("sqrt", (pa.array([2**64 - 1, 4, None], pa.uint64()),)),
    ("greatest", (ZONED, ZONED)), ("list_contains", (PAIRS, SMALL)),
    ("greatest", (SMALL, INTS)), ("least", (FLOATS, SMALL)), ("greatest", (TEXTS, PARTS)), ("least", (DAYS, DAYS)),
    ("struct_field", (STRUCTS, "a")), ("struct_field", (STRUCTS, "b")),
    ("list_value", (SMALL,)), ("list_value", (SMALL, 3, INTS)), ("list_value", (TEXTS, "-")),
    ("list_element", (LISTS, SMALL)), ("list_contains", (LISTS, SMALL)), ("length", (LISTS,)),
    ("case", (pa.array([True, False, None]), TEXTS, "-")), ("case", (pa.array([True, None]), SMALL, FLOATS)),
]  # fmt: skip


def _rows(arguments: tuple[Argument, ...]) -> list[tuple[Any, ...]]:
    """Every combination of the columns' values; some hundred of them where there are more."""
    values = [list(range(len(each))) if isinstance(each, pa.Array) else [0] for each in arguments]
    found = list(itertools.product(*values))
    return found if len(found) <= 400 else random.Random(1).sample(found, 400)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return Fraction(value)
    return None if isinstance(value, float) and math.isnan(value) else value


@pytest.mark.parametrize(("name", "arguments"), CASES, ids=[f"{name}-{n}" for n, (name, _) in enumerate(CASES)])
def test_a_function_means_what_the_oracle_says(name: str, arguments: tuple[Argument, ...]) -> None:
    rows = _rows(arguments)
    columns: dict[str, pa.Array] = {}
    written: list[Expression] = []
    given: list[list[Any]] = []
    for number, each in enumerate(arguments):
        if isinstance(each, pa.Array):
            columns[f"c{number}"] = each.take(pa.array([row[number] for row in rows]))
            written.append(Column("R", f"c{number}"))
            given.append([_plain(value) for value in columns[f"c{number}"].to_pylist()])
        else:
            written.append(Constant(each))
            given.append([each] * len(rows))
    found = evaluate(Apply(name, tuple(written)), lambda column: columns[column.name])
    for row, got in zip(zip(*given, strict=True), map(_plain, found.to_pylist()), strict=True):
        expected = FUNCTIONS[name](*row)
        if name in ("case", "coalesce", "greatest", "least") and isinstance(got, float) and expected is not None:
            expected = float(expected)
        if isinstance(got, datetime) and type(expected) is date:
            expected = datetime(expected.year, expected.month, expected.day)  # beside timestamps
        if isinstance(got, float) and isinstance(expected, float) and name in ("exp", "ln", "log10", "log2", "power"):
            assert got == expected or math.isclose(got, expected, rel_tol=1e-14), (name, row)
        else:
            assert got == expected, (name, row)


def test_every_function_has_a_meaning_and_cases() -> None:
    assert set(BUILTINS) == set(FUNCTIONS) == {name for name, _ in CASES}


def test_a_function_that_keeps_null_is_null_where_an_argument_is() -> None:
    for name, arguments in CASES:
        columns = [each for each in arguments if isinstance(each, pa.Array)]
        if BUILTINS[name].keeps_null:
            empty = {str(number): pa.nulls(2, column.type) for number, column in enumerate(columns)}
            places = iter(range(len(columns)))
            written = tuple(
                Column("R", str(next(places))) if isinstance(each, pa.Array) else Constant(each) for each in arguments
            )
            assert evaluate(Apply(name, written), lambda column, e=empty: e[column.name]).null_count == 2, name  # type: ignore[misc]


def test_names_are_found_in_any_case_and_by_their_aliases() -> None:
    assert builtin_named("LOWER") is BUILTINS["lower"]
    assert builtin_named("Char_Length") is BUILTINS["length"]
    assert builtin_named("nothing") is None
    assert "lower" in similar_names("lowr")


def test_arguments_of_the_wrong_kind_are_named() -> None:
    from operators.functions.arguments import Argument as Given

    number = Given("integer", pa.int64())
    with pytest.raises(ArgumentError, match=r"its argument must be text \(CAST it AS VARCHAR\), not an integer"):
        BUILTINS["lower"].result([number])
    with pytest.raises(ArgumentError, match="argument 2 must be a whole number, not a string"):
        BUILTINS["round"].result([number, Given("string", pa.string())])
    with pytest.raises(ArgumentError, match="'fortnight' is not a part of a time: write one of year"):
        BUILTINS["date_part"].result([Given("string", pa.string(), True, "fortnight"), Given("date", pa.date32())])


def test_times_at_the_ends_of_their_unit_keep_it_beside_a_constant() -> None:
    ends = pa.array([-(2**63), 2**63 - 1, None], pa.timestamp("ms"))
    fallback = Constant(datetime(2024, 2, 29))
    found = evaluate(Apply("coalesce", (Column("R", "x"), fallback)), lambda column: ends)
    assert found.type == pa.timestamp("ms")
    assert found.cast(pa.int64()).to_pylist()[:2] == [-(2**63), 2**63 - 1]
    finer = pa.array([0, 0, 7], pa.timestamp("us"))
    columns = {"x": ends, "y": finer}
    both = evaluate(Apply("coalesce", (Column("R", "x"), Column("R", "y"))), lambda column: columns[column.name])
    assert both.cast(pa.int64()).to_pylist() == [0, 0, 7]  # what does not fit is null
