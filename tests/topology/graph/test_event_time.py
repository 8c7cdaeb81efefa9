"""Event times as numbers, and where they go backwards."""

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from topology import SchemaError
from topology.graph.event_time import check_event_time, event_times, first_backwards


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([3, None, 5], pa.int16(), [3, None, 5]),
        ([2**63 - 1], pa.int64(), [2**63 - 1]),
        ([0.5, None, float("nan"), -1.0], pa.float32(), [0.5, None, None, -1.0]),
        ([dt.datetime(1970, 1, 1, 0, 0, 2)], pa.timestamp("ms"), [2000]),
        ([dt.date(1970, 1, 3), None], pa.date32(), [2, None]),
        ([dt.date(1970, 1, 3)], pa.date64(), [2 * 86_400_000]),
        ([dt.time(0, 0, 9)], pa.time32("s"), [9]),
        ([dt.timedelta(seconds=1)], pa.duration("us"), [1_000_000]),
    ],
    ids=str,
)
def test_times_become_numbers_and_nulls_are_marked(values: list[Any], kind: pa.DataType, expected: list[Any]) -> None:
    check_event_time("R", pa.schema([("ts", kind)]), "ts")
    times, valid = event_times(pa.array(values, kind))
    marked = [None if valid is not None and not valid[row] else time for row, time in enumerate(times.tolist())]
    assert marked == expected


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.bool_(), pa.uint64(), pa.list_(pa.int64()), pa.month_day_nano_interval()]
)
def test_what_cannot_be_a_time_is_refused_with_a_remedy(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match=r"stream 'R': event-time column 'ts' is .*cast it before sending"):
        check_event_time("R", pa.schema([("ts", kind)]), "ts")


def test_a_missing_time_column_is_named_with_those_there_are() -> None:
    with pytest.raises(SchemaError, match="'ts' is missing; columns: a, b"):
        check_event_time("R", pa.schema([("a", pa.int64()), ("b", pa.int64())]), "ts")


@pytest.mark.parametrize(
    ("times", "valid", "latest", "expected"),
    [
        ([1, 1, 2], None, None, None),
        ([1, 1, 2], None, 1, None),
        ([1, 3, 2], None, None, (2, 3, 2)),
        ([1, 3, 2], None, 2, (0, 2, 1)),
        ([9, 3, 0, 4], [False, True, False, True], None, None),
        ([9, 3, 0, 2], [False, True, False, True], None, (3, 3, 2)),
        ([9, 3], [False, True], 4, (1, 4, 3)),
        ([9, 3], [False, False], 4, None),
        ([], None, 4, None),
    ],
)
def test_the_first_row_that_goes_backwards_is_found(
    times: list[int], valid: list[bool] | None, latest: int | None, expected: tuple[int, int, int] | None
) -> None:
    mask = None if valid is None else np.array(valid)
    assert first_backwards(np.array(times, dtype=np.int64), mask, latest) == expected
