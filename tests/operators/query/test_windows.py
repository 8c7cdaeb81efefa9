from __future__ import annotations

import math
from datetime import timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators import CountWindow, TimeWindow, UnboundedWindow, WindowError
from operators.query.windows import Window
from operators.routing.liveness import Liveness, liveness

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@given(st.integers(1, 12), st.integers(1, 15), st.integers(0, 60))
def test_count_window_follows_its_formula(size: int, slide: int, rows: int) -> None:
    live = liveness(CountWindow(size, slide), None)
    before = np.arange(rows + 1)
    found = live.first(before, before)
    for n, first in zip(before.tolist(), found.tolist(), strict=True):
        assert first <= n
        border = max(0, math.ceil(Fraction(n - size, slide)) * slide)
        assert [position >= first for position in range(n)] == [position >= border for position in range(n)]


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


def live_at(window: Window, now: float, n: int, times: list[float]) -> list[bool]:
    """Which of a side's first n rows are live at a row of time `now`: the formulas of docs/semantics.md."""
    if isinstance(window, UnboundedWindow):
        return [True] * n
    size, slide = window.size, window.slide
    assert isinstance(size, int | float)
    if isinstance(window, CountWindow):
        border = max(0, math.ceil(Fraction(n - window.size, window.slide)) * window.slide)
        return [position >= border for position in range(n)]
    if slide is None:
        return [now - time <= size for time in times[:n]]
    assert isinstance(slide, int | float)
    return [time >= (math.floor((now - size) / slide) + 1) * slide for time in times[:n]]


windows = st.one_of(
    st.builds(CountWindow, st.integers(1, 6), st.integers(1, 8)),
    st.builds(CountWindow.tumbling, st.integers(1, 5)),
    st.builds(TimeWindow, st.integers(0, 6), st.none() | st.integers(1, 8)),
    st.builds(TimeWindow.tumbling, st.integers(1, 5)),
    st.just(UnboundedWindow()),
)


@given(
    windows,
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40),
    st.lists(st.integers(1, 7), min_size=1, max_size=12),
    st.booleans(),
)
def test_a_step_may_ask_for_the_rows_of_each_side_in_a_call_of_its_own(
    window: Window, whole: bool, rows: list[tuple[int, bool]], cuts: list[int], own_first: bool
) -> None:
    """For every row of the total order, of either side, the live rows of one side: what the outer kinds ask for."""
    times = np.cumsum([gap for gap, _ in rows], dtype=np.int64)
    own = np.array([mine for _, mine in rows], dtype=bool)
    before = np.cumsum(own) - own
    live: Liveness = liveness(window, pa.int64() if whole else pa.float64())
    side: list[float] = times[own].tolist()
    start = 0
    while start < len(rows):
        step = slice(start, start + cuts[start % len(cuts)])
        start = step.stop
        now = times[step] if whole else times[step].astype(np.float64)
        live.append(now[own[step]])
        first = np.empty(len(now), np.int64)
        for asked in (own[step], ~own[step]) if own_first else (~own[step], own[step]):
            first[asked] = live.first(before[step][asked], now[asked])
        for at, n, found in zip(now.tolist(), before[step].tolist(), first.tolist(), strict=True):
            assert found <= n
            assert [position >= found for position in range(n)] == live_at(window, at, n, side)


def test_expired_times_are_forgotten_with_the_next_rows() -> None:
    live = liveness(TimeWindow(10), pa.int64())
    for step in range(200):
        times = np.arange(step * 1000, (step + 1) * 1000)
        live.append(times)
        live.first(np.arange(step * 1000, (step + 1) * 1000), times)
    assert live._times.nbytes < 100_000  # type: ignore[union-attr]


@pytest.mark.parametrize("size", [2**62, 2**63, 2**64, 2**80])
def test_a_time_window_longer_than_int64_keeps_all(size: int) -> None:
    times = np.array([INT64_MIN, -1, 0, 1, INT64_MAX])
    live = liveness(TimeWindow(size), pa.int64())
    live.append(times)
    expected = [sum(t - y > size for y in times.tolist()) for t in times.tolist()]
    assert live.first(np.full(5, 5), times).tolist() == expected


@given(st.integers(-6, 6), st.integers(-6, 6), st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=30))
def test_interval_windows_are_the_interval(before: int, after: int, rows: list[tuple[int, bool]]) -> None:
    if before + after < 0:
        with pytest.raises(WindowError, match="before \\+ after must be zero or more"):
            TimeWindow.interval(before, after)
        return
    pair = TimeWindow.interval(before, after)
    assert pair == (TimeWindow(max(before, 0)), TimeWindow(max(after, 0)))
    times = np.cumsum([gap for gap, _ in rows], dtype=np.int64).tolist()
    for later in range(len(rows)):
        for earlier in range(later):
            if rows[later][1] == rows[earlier][1]:
                continue
            left, right = (later, earlier) if rows[later][1] else (earlier, later)
            live = times[later] - times[earlier] <= pair[0 if left == earlier else 1].size
            within = times[right] - before <= times[left] <= times[right] + after
            assert live >= within  # no pair of the interval is lost
            if before >= 0 and after >= 0:
                assert live == within


@pytest.mark.parametrize(
    ("window", "shown"),
    [
        (CountWindow(5), "CountWindow(5)"),
        (CountWindow(5, 2), "CountWindow(5, 2)"),
        (CountWindow(1), "CountWindow(1)"),
        (CountWindow.tumbling(5), "CountWindow.tumbling(5)"),
        (CountWindow(100, per_key=True), "CountWindow(100, per_key=True)"),
        (CountWindow.tumbling(9, per_key=True), "CountWindow.tumbling(9, per_key=True)"),
        (TimeWindow("90 min"), "TimeWindow('1 h 30 min')"),
        (TimeWindow(60, 10), "TimeWindow(60, 10)"),
        (TimeWindow.tumbling("10 min"), "TimeWindow.tumbling('10 min')"),
        (UnboundedWindow(), "UnboundedWindow()"),
    ],
)
def test_a_window_reads_as_it_is_written(window: Window, shown: str) -> None:
    assert repr(window) == shown
    names = {"CountWindow": CountWindow, "TimeWindow": TimeWindow, "UnboundedWindow": UnboundedWindow}
    assert eval(shown, names) == window  # noqa: S307


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
        (lambda: CountWindow(2**62), "write UnboundedWindow\\(\\) to keep all rows"),
        (lambda: CountWindow(5, 1, 1), "per_key must be True or False, not 1"),  # type: ignore[arg-type]
        (lambda: CountWindow.tumbling(0), "size must be a whole number of 1 or more, not 0"),
        (lambda: TimeWindow.tumbling(0), "slide must be positive, not 0"),
        (lambda: TimeWindow.interval("5 m", 1), "TimeWindow.interval: before: '5 m' is not a length of time"),
        (lambda: TimeWindow.interval("5 min", 1), "before is '5 min' and after 1: give both a unit, or neither"),
        (lambda: TimeWindow.interval("-5 min", "1 min"), "no row lies '-5 min' before another and '1 min' after it"),
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
