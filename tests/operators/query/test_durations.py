from __future__ import annotations

import math
from datetime import timedelta
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.query.durations import in_unit, parse_duration, written
from operators.query.errors import DurationError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("250 ms", timedelta(milliseconds=250)),
        ("5 s", timedelta(seconds=5)),
        ("5s", timedelta(seconds=5)),
        ("10 min", timedelta(minutes=10)),
        ("1.5 h", timedelta(minutes=90)),
        (".5 h", timedelta(minutes=30)),
        ("2 days", timedelta(days=2)),
        ("1 Day", timedelta(days=1)),
        ("1 week", timedelta(days=7)),
        ("1 h 30 min", timedelta(minutes=90)),
        ("1h30min", timedelta(minutes=90)),
        ("7 us", timedelta(microseconds=7)),
        ("7 µs", timedelta(microseconds=7)),
        ("0 s", timedelta(0)),
        ("-5 min", timedelta(minutes=-5)),
        ("- 1 h 30 min", timedelta(minutes=-90)),
        ("  10   MINUTES ", timedelta(minutes=10)),
        ("0.000001 s", timedelta(microseconds=1)),
        ("999999999 d 23 h 59 min 59.999999 s", timedelta.max),
    ],
)
def test_text_is_read_exactly(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@given(st.timedeltas())
def test_what_is_written_is_read_back(length: timedelta) -> None:
    assert parse_duration(written(length)) == length


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.sampled_from(["s", "min", "h"]))
def test_decimals_are_not_rounded(whole: int, millionths: int, unit: str) -> None:
    seconds = {"s": 1, "min": 60, "h": 3600}[unit]
    exact = Fraction(f"{whole}.{millionths:09d}") * seconds * 10**6
    text = f"{whole}.{millionths:09d} {unit}"
    if exact.denominator == 1:
        assert parse_duration(text) == timedelta(microseconds=int(exact))
    else:
        with pytest.raises(DurationError, match="not a whole number of microseconds"):
            parse_duration(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", '\'\' is not a length of time: write numbers with units, such as "250 ms", "5 s", "10 min"'),
        ("-", "'-' is not a length of time"),
        ("10", "'10' is not a length of time: write numbers with units"),
        ("min", "'min' is not a length of time: write numbers with units"),
        ("five min", "'five min' is not a length of time"),
        ("10 min later", "'10 min later' is not a length of time from 'later' on"),
        ("1 h and 5 min", "from 'and 5 min' on"),
        ("PT5M", "'PT5M' is not a length of time"),
        ("1e3 s", "since 'e' is not a unit of one: units are us, ms, s, min, h, d, w"),
        ("1.2.3 s", "is not a length of time"),
        ("10 parsecs", "since 'parsecs' is not a unit of one: units are us, ms, s, min, h, d, w"),
        ("5 m", "m may be minutes or months: write min"),
        ("2 months", "months differ in length: write days"),
        ("1 year", "years differ in length: write days"),
        ("5 ns", "give nanoseconds as a number in the event time's own unit"),
        ("30 min 1 h", "write the longest unit first and each unit once"),
        ("1 h 2 hours", "write the longest unit first and each unit once"),
        ("1 h -5 min", "from '-5 min' on"),
        ("0.5 us", "not a whole number of microseconds"),
        ("1000000000 d", "longer than the 999,999,999 days"),
    ],
)
def test_text_that_is_no_duration_is_refused_with_what_to_write(text: str, message: str) -> None:
    with pytest.raises(DurationError) as raised:
        parse_duration(text)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("90 s", pa.timestamp("s"), 90),
        ("90 s", pa.timestamp("ns", "UTC"), 90_000_000_000),
        ("90 s", pa.duration("ms"), 90_000),
        ("90 s", pa.time64("us"), 90_000_000),
        ("36 h", pa.date32(), Fraction(3, 2)),
        ("36 h", pa.date64(), 129_600_000),
        (timedelta(microseconds=1), pa.timestamp("s"), Fraction(1, 10**6)),
        (7, pa.timestamp("s"), 7),
        (0.1, pa.float64(), Fraction(0.1)),
        (2**70, None, 2**70),
    ],
)
def test_a_duration_becomes_an_exact_number_in_the_unit_of_the_column(
    value: str, kind: pa.DataType, expected: Fraction
) -> None:
    assert in_unit(value, kind) == expected


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ("90 s", pa.int64(), "90 s is a length of time, but event time is int64: write it as a number in that unit"),
        (timedelta(seconds=90), None, "1 min 30 s is a length of time, but event time is row numbers"),
        ("90 s", pa.float64(), "event time is double"),
        (True, None, "True is not a length of time"),
        (math.inf, None, "inf is not a length of time: write a finite number"),
        (b"5 s", None, "b'5 s' is not a length of time: write a timedelta, a number or text"),
    ],
)
def test_a_duration_that_does_not_fit_the_column_is_refused(value: str, kind: pa.DataType, message: str) -> None:
    with pytest.raises(DurationError) as raised:
        in_unit(value, kind)
    assert message in str(raised.value)
