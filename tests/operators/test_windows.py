from __future__ import annotations

import math
from datetime import timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators import CountWindow, TimeWindow, WindowError
from operators.windows import liveness

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@given(st.integers(1, 12), st.integers(1, 15), st.integers(0, 60))
def test_count_window_follows_its_formula(size: int, slide: int, rows: int) -> None:
    live = liveness(CountWindow(size, slide), None)
    before = np.arange(rows + 1)
    expected = [max(0, math.ceil(Fraction(n - size, slide)) * slide) for n in range(rows + 1)]
    assert live.first(before, before).tolist() == expected


integer_times = st.one_of(
    st.lists(st.integers(-20, 20), max_size=30),
    st.lists(st.sampled_from([INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX]), max_size=8),
)


@given(integer_times, integer_times, st.integers(0, 15), st.one_of(st.none(), st.integers(1, 9)))
def test_time_window_over_integers_is_exact(
    known: list[int], arriving: list[int], size: int, slide: int | None
) -> None:
    known, arriving = sorted(known), sorted(arriving)
    live = liveness(TimeWindow(size, slide), pa.int64())
    live.append(np.array(known, dtype=np.int64))
    before = np.full(len(arriving), len(known))
    found = live.first(before, np.array(arriving, dtype=np.int64))
    for time, first in zip(arriving, found, strict=True):
        for position, row in enumerate(known):
            if slide is None:
                expected = time - row <= size
            else:
                expected = row >= ((time - size) // slide + 1) * slide
            assert (position >= first) == expected


float_times = st.lists(
    st.one_of(
        st.sampled_from([0.0, 0.1, 0.2, 0.30000000000000004, 0.3, 1e16, 1e16 + 2, -1e-300, math.inf, -math.inf]),
        st.floats(-4, 4),
    ),
    max_size=20,
)


@given(float_times, float_times, st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, 1e16]))
def test_time_window_over_floats_is_the_condition_as_written(
    known: list[float], arriving: list[float], size: float
) -> None:
    known, arriving = sorted(known), sorted(arriving)
    live = liveness(TimeWindow(size), pa.float64())
    live.append(np.array(known))
    found = live.first(np.full(len(arriving), len(known)), np.array(arriving))
    for time, first in zip(arriving, found, strict=True):
        with np.errstate(invalid="ignore"):
            within = [bool(np.float64(time) - np.float64(row) <= size) for row in known]
        # rows that are later than the arriving one are not before it, and so not asked for
        for position, row in enumerate(known):
            if row <= time:
                assert (position >= first) == within[position], (time, row)


def test_rows_that_arrive_step_by_step_are_found_where_all_at_once_are() -> None:
    times = np.arange(0, 1000, 3)
    whole, parts = (liveness(TimeWindow(50, 7), pa.int64()) for _ in range(2))
    whole.append(times)
    before = np.arange(len(times))
    expected = whole.first(before, times)
    found = []
    for start in range(0, len(times), 10):
        step = slice(start, start + 10)
        parts.append(times[step])
        found += parts.first(before[step], times[step]).tolist()
    assert found == expected.tolist()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.timestamp("s"), (90, None)),
        (pa.timestamp("ms"), (90_000, None)),
        (pa.timestamp("us", "UTC"), (90_000_000, None)),
        (pa.timestamp("ns"), (90_000_000_000, None)),
        (pa.date64(), (90_000, None)),
        (pa.date32(), (0, None)),
    ],
)
def test_a_timedelta_becomes_the_unit_of_the_column(kind: pa.DataType, expected: tuple[int, None]) -> None:
    assert TimeWindow(timedelta(seconds=90)).in_unit_of(kind) == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CountWindow(0), "size must be a whole number of 1 or more, not 0"),
        (lambda: CountWindow(5, 0), "slide must be a whole number of 1 or more, not 0"),
        (lambda: CountWindow(2.5), "not 2.5"),  # type: ignore[arg-type]
        (lambda: CountWindow(True), "not True"),
        (lambda: TimeWindow(-1), "size must be zero or more, not -1"),
        (lambda: TimeWindow(5, 0), "slide must be positive, not 0"),
        (lambda: TimeWindow(-1, 5), "size must be zero or more, not -1"),
        (lambda: TimeWindow(5, "-1 s"), "slide must be zero or more, not '-1 s'"),
        (lambda: TimeWindow("10 parsecs"), "TimeWindow: size: '10 parsecs' is not a length of time"),
        (lambda: TimeWindow(math.nan), "TimeWindow: size: nan is not a length of time"),
        (lambda: TimeWindow(None), "TimeWindow: size: None is not a length of time"),  # type: ignore[arg-type]
        (lambda: TimeWindow(timedelta(seconds=1)).in_unit_of(pa.int64()), "event time is int64"),
        (lambda: TimeWindow(timedelta(seconds=1)).in_unit_of(None), "event time is row numbers"),
        (lambda: TimeWindow(timedelta(milliseconds=1500), timedelta(seconds=1)).in_unit_of(pa.timestamp("s")), "finer"),
    ],
)
def test_a_window_that_makes_no_sense_is_refused(make: object, message: str) -> None:
    with pytest.raises(WindowError, match=message):
        make()  # type: ignore[operator]
