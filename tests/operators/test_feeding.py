"""What `collect` takes as the rows of a stream or of its sources."""

from __future__ import annotations

from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from operators import CountWindow, JoinError, StreamJoin
from topology import InputError

JOIN = StreamJoin("R", "S", "R.x < S.x", CountWindow(10), select=["R.x", "S.x"])
S = pa.table({"x": [2, 4]})
EXPECTED = [{"R.x": 1, "S.x": 2}, {"R.x": 1, "S.x": 4}, {"R.x": 3, "S.x": 4}]


def inputs() -> dict[str, Any]:
    table = pa.table({"x": [1, 3]})
    return {
        "table": table,
        "batch": table.to_batches()[0],
        "batches": table.to_batches(max_chunksize=1),
        "iterator of batches": iter(table.to_batches(max_chunksize=1)),
        "reader": table.to_reader(max_chunksize=1),
        "pandas": table.to_pandas(),
        "pandas frames": [pd.DataFrame({"x": [1]}), pd.DataFrame({"x": [3]})],
        "iterator of frames": (frame for frame in (pl.DataFrame({"x": [1]}), pd.DataFrame({"x": [3]}))),
        "polars": pl.DataFrame({"x": [1, 3]}),
        "lazy polars": pl.LazyFrame({"x": [1, 3]}),
        "duckdb": duckdb.connect().sql("SELECT unnest([1, 3])::BIGINT AS x"),
        "dict": {"x": [1, 3]},
        "dict of an array": {"x": pa.array([1, 3])},
        "dicts": [{"x": 1}, {"x": 3}],
    }


@pytest.mark.parametrize("name", inputs())
def test_rows_of_a_stream(name: str) -> None:
    assert JOIN.collect({"R": inputs()[name], "S": S}).to_pylist() == EXPECTED


@pytest.mark.parametrize("name", inputs())
def test_rows_of_a_source(name: str) -> None:
    assert JOIN.collect({"R": {"R-0": inputs()[name], "R-1": S.slice(2)}, "S": S}).to_pylist() == EXPECTED


def test_a_stream_or_source_without_rows() -> None:
    assert JOIN.collect({"R": [], "S": S}).num_rows == 0
    assert JOIN.collect({"R": {}, "S": S}).num_rows == 0
    assert JOIN.collect({"R": {"R-0": [{"x": 1}, {"x": 3}], "R-1": []}, "S": S}).to_pylist() == EXPECTED


def test_a_reader_is_read_as_the_join_takes_its_rows() -> None:
    read = 0

    def batches() -> Any:
        nonlocal read
        for number in range(50):
            read += 1
            yield pa.record_batch({"x": [number]})

    reader = pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), batches())
    with pytest.raises(InputError, match="column 'x', which the join needs, is missing"):
        JOIN.collect({"R": reader, "S": pa.table({"y": [1]})})
    assert read == 0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("file.csv", "stream 'R', source 'R' takes .*, not str"),
        ([1, 2], "stream 'R', source 'R' takes .*, not a list of int"),
        ({"R-0": S, "x": [1, 2]}, "stream 'R', source 'x' takes .*, not a list of int"),
        (pl.Series([1]), "stream 'R', source 'R' takes .*, not Series"),
    ],
)
def test_what_is_not_rows_is_refused_before_anything_runs(rows: Any, message: str) -> None:
    with pytest.raises(JoinError, match=message):
        JOIN.collect({"R": rows, "S": S})


def test_a_running_join_reads_a_reader_once() -> None:
    with JOIN.launch() as running:
        assert running.send("R", pa.table({"x": [1, 3]}).to_reader()) == 2
        assert running.send("S", [{"x": 2}, {"x": 4}]) == 2
        running.finish()
        assert [row for rows in running.results() for row in rows.to_pylist()] == EXPECTED
