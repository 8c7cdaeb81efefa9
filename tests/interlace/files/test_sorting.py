"""Rows in the order of their times: sorted files as they are, others by an external merge sort."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlace.files import sorting
from interlace.files.sorting import in_time_order, merged, order_of

TIMES = st.lists(st.one_of(st.integers(0, 6), st.none()), max_size=40)


def batches_of(times: list[int | None], rows: int, kind: pa.DataType) -> list[pa.RecordBatch]:
    """Batches of some rows each; `n` numbers the rows as the file has them."""
    table = pa.table({"ts": pa.array(times, pa.int64()).cast(kind), "n": pa.array(range(len(times)), pa.int64())})
    return table.to_batches(max_chunksize=rows)


def stably_sorted(times: list[int | None]) -> list[int]:
    """The numbers of the rows that have a time, in order."""
    return [number for _, number in sorted((time, number) for number, time in enumerate(times) if time is not None)]


@given(TIMES, st.integers(1, 5), st.integers(1, 200), st.sampled_from([pa.int64(), pa.float64(), pa.timestamp("us")]))
def test_a_file_of_any_size_is_sorted_stably(
    tmp_path_factory: pytest.TempPathFactory, times: list[int | None], rows: int, run_bytes: int, kind: pa.DataType
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "MERGED_ROWS", 2)  # several batches in each run
        found = in_time_order(
            batches_of(times, rows, kind), "ts", str(tmp_path_factory.mktemp("runs")), run_bytes=run_bytes
        )
        assert [n for batch in found for n in batch["n"].to_pylist()] == stably_sorted(times)


def test_of_equal_times_the_rows_of_earlier_runs_come_first_also_across_batches() -> None:
    first = iter(batches_of([1, 1, 1, 2], 1, pa.int64()))
    second = iter(batches_of([1, 1, 3], 3, pa.int64()))
    found = pa.Table.from_batches(merged([first, second], "ts"))
    assert found["ts"].to_pylist() == [1, 1, 1, 1, 1, 2, 3]
    assert found["n"].to_pylist() == [0, 1, 2, 0, 1, 3, 2]


def test_rows_without_a_time_are_left_out() -> None:
    table = pa.table({"ts": [2.0, float("nan"), None, 1.0]})
    found = pa.Table.from_batches(in_time_order(table.to_batches(), "ts", "unused"))
    assert found["ts"].to_pylist() == [1.0, 2.0]


@given(TIMES, st.integers(1, 5))
def test_a_look_at_the_times_tells_whether_they_go_backwards(times: list[int | None], rows: int) -> None:
    known = [time for time in times if time is not None]
    order = order_of(batches_of(times, rows, pa.int64()), "ts")
    assert order.in_order == (known == sorted(known))
    assert (order.rows, order.untimed) == (len(times), times.count(None))


def test_runs_are_written_to_the_directory_that_is_given(tmp_path: Path) -> None:
    batches = in_time_order(batches_of([3, 1, 2], 1, pa.int64()), "ts", str(tmp_path), run_bytes=1)
    assert pc.sum(next(batches)["ts"]).as_py() == 1
    assert len(list(tmp_path.iterdir())) == 4  # the last one is empty here
