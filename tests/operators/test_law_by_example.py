"""Sentences of the law, each by one or two rows through `StreamJoin`, on every way a condition can take.

A condition may be searched for by an index, evaluated on candidate pairs, or evaluated on the rows of one stream. Each
example is asked as it stands, negated once and twice, beside what keeps it from being searched for, and as a column.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from operators import CountWindow, StreamJoin

NAN, INF = float("nan"), float("inf")
INT, FLOAT, TEXT = pa.int64(), pa.float64(), pa.string()
CENT = pa.decimal128(10, 2)
DAY, LEAP = date(2024, 1, 31), date(2024, 2, 29)
INTS, PAIR = pa.list_(pa.int64()), pa.struct([("a", pa.int64()), ("b", pa.string())])

# (left value, its type, right value, its type, condition on R.x and S.y, what it is: None is unknown)
EXAMPLES: list[tuple[Any, pa.DataType, Any, pa.DataType, str, bool | None]] = [
    # A comparison in which an operand is null or NaN is unknown
    (None, INT, 1, INT, "R.x = S.y", None),
    (None, INT, None, INT, "R.x = S.y", None),
    (None, INT, 1, INT, "R.x != S.y", None),
    (NAN, FLOAT, 1.0, FLOAT, "R.x != S.y", None),
    (NAN, FLOAT, NAN, FLOAT, "R.x = S.y", None),
    (INF, FLOAT, INF, FLOAT, "R.x - S.y < 1", None),
    (None, TEXT, "a", TEXT, "R.x <= S.y", None),
    # three-valued logic
    (None, INT, 1, INT, "R.x = 1 OR S.y = 1", True),
    (None, INT, 1, INT, "R.x = 1 OR S.y = 2", None),
    (None, INT, 1, INT, "R.x = 1 AND S.y = 1", None),
    (None, INT, 1, INT, "R.x = 1 AND S.y = 2", False),
    (None, INT, 1, INT, "NOT (R.x = 1 AND S.y = 2)", True),
    (None, INT, 1, INT, "NOT (R.x = 1 OR S.y = 2)", None),
    (3, INT, None, INT, "R.x IN (1, S.y)", None),
    (1, INT, None, INT, "R.x IN (1, S.y)", True),
    (5, INT, None, INT, "R.x BETWEEN 6 AND S.y", False),
    (5, INT, None, INT, "R.x BETWEEN 4 AND S.y", None),
    # IS NULL is true for null and for NaN, and never unknown
    (NAN, FLOAT, 1, INT, "R.x IS NULL AND S.y = 1", True),
    (None, TEXT, 1, INT, "R.x IS NULL AND S.y = 1", True),
    (INF, FLOAT, INF, FLOAT, "(R.x - S.y) IS NULL", True),
    (-(2**63), INT, 1, INT, "(R.x - S.y) IS NOT NULL", True),
    (NAN, FLOAT, 1, INT, "R.x IS NOT NULL OR S.y = 2", False),
    # -0.0 equals 0.0; integers never overflow; integers compare with floats by value, exactly
    (-0.0, FLOAT, 0.0, FLOAT, "R.x = S.y", True),
    (-0.0, FLOAT, 0.0, FLOAT, "R.x < S.y", False),
    (-0.0, FLOAT, 0, INT, "R.x = S.y", True),
    (2**63 - 1, INT, -(2**63), INT, "R.x - S.y > 0", True),
    (2**63 - 1, INT, 2, INT, "R.x * S.y > R.x", True),
    (2**64 - 1, pa.uint64(), -1, INT, "R.x > S.y", True),
    (2**53 + 1, INT, 2.0**53, FLOAT, "R.x = S.y", False),
    (2**53 + 1, INT, 2.0**53, FLOAT, "R.x > S.y", True),
    (2**53 + 1, INT, 1, INT, "R.x > 9007199254740992.0 AND S.y = 1", True),
    (2**63 - 1, INT, 2.0**63, FLOAT, "R.x < S.y", True),
    # arithmetic in which a float takes part is float64 as written
    (0.1, FLOAT, 0.3, FLOAT, "R.x * 3 = S.y", False),
    (0.8, FLOAT, 0.6, FLOAT, "abs(R.x - S.y) <= 0.2", False),
    (0.3, FLOAT, 0.1, FLOAT, "abs(R.x - S.y) <= 0.2", True),
    (2**53 + 1, INT, 2.0**53, FLOAT, "R.x + 0.0 = S.y", True),
    # decimals compute exactly; a number written beside them is the decimal that is written
    (Decimal("0.10"), CENT, Decimal("0.20"), CENT, "R.x + S.y = 0.3", True),
    (Decimal("0.10"), CENT, Decimal("0.20"), CENT, "R.x + 0.1 = S.y", True),
    (Decimal("2.00"), CENT, 2, INT, "R.x = S.y", True),
    (Decimal("0.10"), CENT, Decimal("0.1"), pa.decimal128(5, 1), "R.x = S.y", True),
    (Decimal("12345678901234567890.01"), pa.decimal128(30, 2), Decimal("12345678901234567890.02"),
     pa.decimal128(30, 2), "R.x < S.y", True),
    # booleans are 0 and 1; strings compare by code point, binary by byte
    (True, pa.bool_(), False, pa.bool_(), "R.x > S.y", True),
    (True, pa.bool_(), 1, INT, "R.x = S.y", True),
    ("Z", TEXT, "a", TEXT, "R.x < S.y", True),
    ("\uffff", TEXT, "\U00010000", TEXT, "R.x < S.y", True),
    ("aaaaaaaa", TEXT, "aaaaaaaa\x00", TEXT, "R.x < S.y", True),
    ("aaaaaaaaa", TEXT, "aaaaaaaab", TEXT, "R.x = S.y", False),
    (b"\x7f", pa.binary(), b"\x80", pa.binary(), "R.x < S.y", True),
    # IS DISTINCT FROM, IS TRUE and IS FALSE are never unknown; null and NaN are not distinct
    (None, INT, None, INT, "R.x IS NOT DISTINCT FROM S.y", True),
    (None, INT, 1, INT, "R.x IS NOT DISTINCT FROM S.y", False),
    (NAN, FLOAT, None, INT, "R.x IS NOT DISTINCT FROM S.y", True),
    (1, INT, 1.0, FLOAT, "R.x IS DISTINCT FROM S.y", False),
    (None, TEXT, "a", TEXT, "R.x IS DISTINCT FROM S.y", True),
    (None, INT, 1, INT, "(R.x = S.y) IS TRUE", False),
    (None, INT, 1, INT, "(R.x = S.y) IS NOT TRUE", True),
    (None, INT, 1, INT, "(R.x = S.y) IS FALSE", False),
    (2, INT, 1, INT, "(R.x = S.y) IS FALSE", True),
    (None, INT, 1, INT, "(R.x = S.y) IS NULL", True),
    # NULL that is written is unknown; constant conditions; conditions as values; row values
    (1, INT, 1, INT, "R.x = NULL OR S.y = 2", None),
    (1, INT, 1, INT, "R.x = S.y AND 1 = 0", False),
    (1, INT, 1, INT, "R.x = S.y AND NULL = 2", None),
    (1, INT, 2, INT, "(R.x < S.y) = (S.y < R.x)", False),
    (None, INT, 2, INT, "(R.x < S.y) = (S.y < 3)", None),
    (1, INT, 1, INT, "(R.x, 2) = (S.y, 2)", True),
    (1, INT, None, INT, "(R.x, 2) = (S.y, 3)", False),
    (1, INT, 1, INT, "(R.x, 2) < (S.y, 3)", True),
    # what is written takes the type of what it meets
    (0.1, pa.float32(), 1, INT, "R.x = 0.1 AND S.y = 1", True),
    (0.1, pa.float32(), 1, INT, "-R.x < -0.1 AND S.y = 1", False),
    (0.1, pa.float32(), 0.1, FLOAT, "R.x = S.y", False),
    (1.5, pa.float32(), 1, INT, "R.x < 1e300 AND S.y = 1", True),
    (INF, pa.float32(), 1, INT, "R.x = 1e300 AND S.y = 1", False),
    (DAY, pa.date32(), 1, INT, "R.x = '2024-01-31' AND S.y = 1", True),
    (DAY, pa.date32(), 1, INT, "R.x IN ('2024-01-30', '2024-02-01') AND S.y = 1", False),
    (DAY, pa.date32(), DAY, pa.date32(), "R.x + 1 > S.y", True),
    (DAY, pa.date32(), DAY, pa.date32(), "R.x - S.y < 1", True),
    (DAY, pa.date32(), DAY, pa.date32(), "R.x - 1 = S.y", False),
    (DAY, pa.date32(), None, pa.date32(), "R.x - S.y = 0", None),
    # functions: a value like a column's; NaN is null to them; null in, null out
    ("ä", TEXT, "Ä", TEXT, "lower(R.x) = lower(S.y)", True),
    (None, TEXT, "a", TEXT, "lower(R.x) != lower(S.y)", None),
    (NAN, FLOAT, 7.0, FLOAT, "coalesce(R.x, 7) = S.y", True),
    (None, INT, 7, INT, "coalesce(R.x, S.y) = 7", True),
    (7, INT, 0, INT, "R.x % S.y = 0", None),
    (-7, INT, -1, INT, "R.x % 3 = S.y", True),
    (-2.5, FLOAT, -3, INT, "round(R.x) = S.y", True),
    (2, INT, 8.0, FLOAT, "R.x ^ 3 = S.y", True),
    ("x", TEXT, 1, INT, "CAST(R.x AS INTEGER) = S.y", None),
    (" 1 ", TEXT, 1, INT, "CAST(R.x AS INTEGER) = S.y", True),
    (2.5, FLOAT, 2, INT, "CAST(R.x AS INTEGER) = S.y", True),
    (None, INT, 1, INT, "CASE WHEN R.x > 0 THEN 1 ELSE 2 END > S.y", True),
    (1, INT, 1, INT, "nullif(R.x, S.y) = 1", None),
    ("a\nb", TEXT, "a%", TEXT, "R.x LIKE S.y", True),
    ("a", TEXT, None, TEXT, "R.x NOT LIKE S.y", None),
    (DAY, pa.date32(), LEAP, pa.date32(), "R.x + INTERVAL '1' MONTH = S.y", True),
    (2**53 + 1, INT, 2.0**53, FLOAT, "coalesce(R.x, 0) > S.y", True),
    # lists and structs: from the first part on; inside, null equals null and is above everything
    ([1, None], INTS, [1, None], INTS, "R.x = S.y", True),
    (None, INTS, [1], INTS, "R.x = S.y", None),
    ([1], INTS, [1, None], INTS, "R.x < S.y", True),
    ([9], INTS, [None], INTS, "R.x < S.y", True),
    ([1, 2], INTS, 2, INT, "list_contains(R.x, S.y)", True),
    ([1, 2], INTS, 2, INT, "R.x[-1] = S.y", True),
    ([1, 2], INTS, 2, INT, "R.x[3] = S.y", None),
    ({"a": 1, "b": None}, PAIR, {"a": 1, "b": None}, PAIR, "R.x = S.y", True),
    ({"a": 1, "b": None}, PAIR, 1, INT, "R.x.a = S.y", True),
]  # fmt: skip


def one_pair(example: tuple[Any, ...], on: str, select: str = "*") -> pa.Table:
    x, x_type, y, y_type = example[:4]
    tables = {"R": pa.table({"x": pa.array([x], x_type)}), "S": pa.table({"y": pa.array([y], y_type)})}
    return StreamJoin.from_sql(f"SELECT {select} FROM R JOIN S ON {on}", window=CountWindow(1)).collect(tables)


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"{each[0]!r} {each[2]!r} {each[4]}" for each in EXAMPLES])
def test_a_condition_has_one_meaning_wherever_it_is_evaluated(example: tuple[Any, ...]) -> None:
    condition, truth = example[4:]
    assert one_pair(example, condition).num_rows == (truth is True)
    assert one_pair(example, f"NOT ({condition})").num_rows == (truth is False)
    assert one_pair(example, f"NOT (NOT ({condition}))").num_rows == (truth is True)
    # beside what nothing can be searched by, so that it is evaluated on pairs
    never = "R.x IS NULL AND R.x IS NOT NULL AND S.y IS NULL"
    assert one_pair(example, f"({condition}) OR ({never})").num_rows == (truth is True)
    everywhere = "(R.x IS NULL OR R.x IS NOT NULL OR S.y IS NULL)"
    shown = one_pair(example, everywhere, select=f"{condition} AS truth")
    assert shown["truth"].to_pylist() == [truth]
