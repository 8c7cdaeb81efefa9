from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import StreamJoin, stream
from operators.query.expressions import Expression
from operators.query.interval_join import interval_windows

R, S = stream("R"), stream("S")


@st.composite
def bounds(draw: Any) -> tuple[Expression, Any]:
    """A bound of R.t - S.t however it is written, and the same as a function of the two times."""
    c, d = draw(st.integers(-6, 6)), draw(st.integers(-3, 3))
    return draw(
        st.sampled_from(
            [
                (R.t <= S.t + c, lambda r, s: r <= s + c),
                (S.t - c > R.t, lambda r, s: s - c > r),
                (R.t + d >= S.t - c, lambda r, s: r + d >= s - c),
                (-R.t < c - S.t, lambda r, s: -r < c - s),
                (R.t.between(S.t - c, S.t + d), lambda r, s: s - c <= r <= s + d),
                (S.t.between(R.t - c, R.t + d), lambda r, s: r - c <= s <= r + d),
                (abs(R.t - S.t + d) <= c, lambda r, s: abs(r - s + d) <= c),
                (abs(S.t - R.t - d) < c, lambda r, s: abs(s - r - d) < c),
                (S.t - R.t + d == c, lambda r, s: s - r + d == c),
            ]
        )
    )


@settings(max_examples=300, deadline=None)
@given(st.lists(bounds(), min_size=1, max_size=3))
def test_the_windows_keep_every_pair_that_the_condition_admits_and_no_longer_than_needed(written: Any) -> None:
    condition = written[0][0]
    for other, _ in written[1:]:
        condition = condition & other
    admitted = {r for r in range(-40, 41) if all(holds(r, 0) for _, holds in written)}
    found = interval_windows(condition, ("R", "t"), ("S", "t"))
    if found is None:
        assert not admitted or min(admitted) == -40 or max(admitted) == 40, "open on one side"
        return
    waits = [window.in_unit_of(pa.int64())[0] for window in found]
    for difference in admitted:
        assert -waits[0] <= difference <= waits[1]
    if admitted:
        # a bound that was written with < is kept by the condition: at most one longer
        assert waits[0] <= max(0, -min(admitted)) + 1
        assert waits[1] <= max(0, *admitted) + 1


def test_an_interval_join_needs_no_window() -> None:
    left = pa.table({"id": [1, 2, 3], "ts": pa.array([0, 100, 400], pa.timestamp("s"))})
    right = pa.table({"id": [7, 8, 9], "ts": pa.array([60, 90, 350], pa.timestamp("s"))})
    condition = R.ts.between(S.ts - timedelta(minutes=1), S.ts + timedelta(seconds=50))
    join = StreamJoin("R", "S", condition, event_time="ts", select=["R.id", "S.id"])
    assert join.collect({"R": left, "S": right}).to_pydict() == {"R.id": [1, 2, 2, 3], "S.id": [7, 7, 8, 9]}
