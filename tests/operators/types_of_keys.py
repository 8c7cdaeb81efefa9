"""Every Arrow type that compares, with values to choose from."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

WORDS = ["", "a", "aa", "abcdefgh", "abcdefghi", "abcdefghj", "é", "z\u0301", "😀", "\x00", "a\x00"]
INTEGERS = [0, 1, 2, 3, 100]
MONEY = [Decimal(text) for text in ("0.00", "1.00", "2.50", "-2.50", "3.00", "99.99")]
BIG = [Decimal(n).scaleb(-2) for n in (0, 1, -1, 10**20, 10**20 + 1, 10**27 - 1, 1 - 10**27, 100, 200)]
DAYS = [date(1970, 1, 1), date(2026, 1, 1), date(2026, 1, 2)]
MOMENTS = [datetime(1970, 1, 1), datetime(2026, 1, 1), datetime(2026, 1, 1, 12), datetime(1969, 12, 31)]
CLOCKS = [time(0), time(12, 30), time(23, 59, 59)]
SPANS = [timedelta(0), timedelta(1), timedelta(seconds=-1)]
BYTES = [word.encode() for word in WORDS]
ZONED = [moment.replace(tzinfo=UTC) for moment in MOMENTS]

TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    **{f"int{bits}": (pa.type_for_alias(f"int{bits}"), [*INTEGERS, -1]) for bits in (8, 16, 32)},
    "int64": (pa.int64(), [*INTEGERS, 2**63 - 1, -(2**63), 2**53 + 1]),
    **{f"uint{bits}": (pa.type_for_alias(f"uint{bits}"), INTEGERS) for bits in (8, 16, 32)},
    "uint64": (pa.uint64(), [*INTEGERS, 2**64 - 1, 2**63, 2**53 + 1]),
    "bool": (pa.bool_(), [True, False]),
    "float16": (pa.float16(), [0.0, -0.0, 1.0, 2.5, math.nan]),
    "float32": (pa.float32(), [0.0, -0.0, 1.0, 2.5, math.inf, math.nan]),
    "float64": (pa.float64(), [0.0, -0.0, 1.0, 2.5, 2.0**53, 2.0**63, -math.inf, math.nan]),
    "decimal32": (pa.decimal32(4, 2), MONEY),
    "decimal64": (pa.decimal64(9, 3), MONEY),
    "decimal128": (pa.decimal128(18, 2), MONEY),
    "long decimal": (pa.decimal128(38, 2), [*MONEY, *BIG]),
    "longer decimal": (pa.decimal256(60, 5), [*MONEY, *BIG]),
    "date32": (pa.date32(), DAYS),
    "date64": (pa.date64(), DAYS),
    **{f"timestamp {unit}": (pa.timestamp(unit), MOMENTS) for unit in ("s", "ms", "us", "ns")},
    "zoned": (pa.timestamp("ms", "UTC"), ZONED),
    "zoned elsewhere": (pa.timestamp("us", "Europe/Paris"), ZONED),
    "time32": (pa.time32("s"), CLOCKS),
    "time64": (pa.time64("ns"), CLOCKS),
    "duration s": (pa.duration("s"), SPANS),
    "duration ns": (pa.duration("ns"), SPANS),
    "string": (pa.string(), WORDS),
    "large_string": (pa.large_string(), WORDS),
    "string_view": (pa.string_view(), WORDS),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), WORDS),
    "binary": (pa.binary(), BYTES),
    "large_binary": (pa.large_binary(), BYTES),
    "fixed_size_binary": (pa.binary(2), [b"aa", b"a\x00", b"\xff\xff"]),
}
