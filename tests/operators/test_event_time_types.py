"""Event times of different types: integers of any width merge, and `collect` takes timestamps of different units."""

from __future__ import annotations

import pyarrow as pa
import pytest

from operators import StreamJoin, TimeWindow
from topology import SchemaError

TIMES = {"R": [1, 3, 5, None], "S": [2, 4, None]}


def table(stream: str, kind: pa.DataType) -> pa.Table:
    times = pa.array(TIMES[stream], pa.int64())
    if pa.types.is_timestamp(kind):
        times = times.cast(pa.timestamp("s")).cast(pa.timestamp(kind.unit))
        times = times if kind.tz is None else times.cast(pa.int64()).cast(kind)
    return pa.table({"id": range(len(times)), "ts": times.cast(kind)})


def join(window: TimeWindow, **changed: object) -> StreamJoin:
    return StreamJoin("R", "S", "R.ts < S.ts", window, event_time="ts", **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("left", "right"),
    [(pa.int32(), pa.uint16()), (pa.uint32(), pa.int64()), (pa.uint8(), pa.uint32()), (pa.int64(), pa.int64())],
)
def test_integers_of_any_width_and_sign_merge(left: pa.DataType, right: pa.DataType) -> None:
    found, late = join(TimeWindow(3)).collect_with_late({"R": table("R", left), "S": table("S", right)})
    assert list(zip(found["R.id"].to_pylist(), found["S.id"].to_pylist(), strict=True)) == [(0, 0), (0, 1), (1, 1)]
    assert found.schema.field("R.ts").type == left
    assert late.schema.field("event_time").type == pa.int64()
    assert late["stream"].to_pylist() == ["R", "S"]


@pytest.mark.parametrize("kind", ["inner", "left", "full", "count"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.timestamp("s"), pa.timestamp("ms")),
        (pa.timestamp("ns"), pa.timestamp("s")),
        (pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC")),
    ],
)
def test_collect_takes_timestamps_of_different_units(left: pa.DataType, right: pa.DataType, kind: str) -> None:
    finest = pa.timestamp("ns", left.tz)
    mixed = join(TimeWindow("3 s"), kind=kind).collect({"R": table("R", left), "S": table("S", right)})
    alike = join(TimeWindow("3 s"), kind=kind).collect({"R": table("R", finest), "S": table("S", finest)})
    assert mixed.schema.field("R.ts").type == left
    assert mixed.schema.field("S.ts").type == right
    assert mixed.cast(alike.schema).equals(alike)
    assert mixed.num_rows


def test_a_running_join_takes_other_units_and_finds_its_rows_late_in_one() -> None:
    with join(TimeWindow("3 s")).launch(sources={"R": ["R"], "S": ["S"]}) as running:
        running.send("R", table("R", pa.timestamp("s")), source="R")
        running.send("S", table("S", pa.timestamp("ms")), source="S")
        running.finish()
        found = pa.Table.from_batches(running.results())
        late = pa.Table.from_batches(running.late(), running.late_schema())
    assert list(zip(found["R.id"].to_pylist(), found["S.id"].to_pylist(), strict=True)) == [(0, 0), (0, 1), (1, 1)]
    assert found.schema.field("R.ts").type == pa.timestamp("s")
    assert late.schema.field("event_time").type == pa.timestamp("ms")
    assert sorted(late["stream"].to_pylist()) == ["R", "S"]


def test_times_with_and_without_a_zone_do_not_merge_and_the_cast_is_named() -> None:
    with join(TimeWindow("3 s")).launch() as running:
        running.send("R", table("R", pa.timestamp("s")))
        with pytest.raises(SchemaError, match=r"cast that of 'R': pc\.assume_timezone\(table\[\"ts\"\], \"UTC\"\)"):
            running.send("S", table("S", pa.timestamp("ms", "UTC")))
        running.finish()


def test_a_window_that_is_a_number_counts_in_its_own_column_s_unit() -> None:
    """R's window is 3 seconds, S's 3 milliseconds: no row of S is live a second later."""
    on = StreamJoin("R", "S", "R.id >= 0 AND S.id >= 0", (TimeWindow(3), TimeWindow(3)), event_time="ts")
    found = on.collect({"R": table("R", pa.timestamp("s")), "S": table("S", pa.timestamp("ms"))})
    pairs = list(zip(found["R.id"].to_pylist(), found["S.id"].to_pylist(), strict=True))
    assert pairs == [(0, 0), (0, 1), (1, 1)]


def test_times_that_do_not_fit_the_finer_unit_are_refused() -> None:
    far = pa.table({"id": [1], "ts": pa.array([10**12], pa.timestamp("s"))})
    with pytest.raises(SchemaError, match="stream 'R': its event times do not fit the unit of the other stream"):
        join(TimeWindow("3 s")).collect({"R": far, "S": table("S", pa.timestamp("ns"))})
