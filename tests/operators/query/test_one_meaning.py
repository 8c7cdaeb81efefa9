"""One condition written in many ways gives one result."""

from __future__ import annotations

import pyarrow as pa
import pytest

from operators import StreamJoin, UnboundedWindow

NEAR = [
    "abs(R.a - S.a) <= 3",
    "3 >= abs(R.a - S.a)",
    "NOT (3 < abs(R.a - S.a))",
    "NOT (abs(R.a - S.a) > 3)",
    "NOT (NOT (3 >= abs(S.a - R.a)))",
    "R.a - S.a BETWEEN -3 AND 3",
]


@pytest.mark.parametrize("on", NEAR)
def test_a_band_may_be_written_from_either_side(on: str) -> None:
    tables = {"R": pa.table({"a": [0, 5, 9, None]}), "S": pa.table({"a": [3, 4, -4, 20]})}
    found = StreamJoin("R", "S", on, UnboundedWindow()).collect(tables).to_pylist()
    assert sorted((row["R.a"], row["S.a"]) for row in found) == [(0, 3), (5, 3), (5, 4)]
