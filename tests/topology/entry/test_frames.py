"""Rows as programs have them become Arrow tables, or an error names the stream and what was given."""

from __future__ import annotations

import datetime
import math
import subprocess
import sys
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from topology import FrameKind, InputError, LocalRuntime, SchemaError, TopologyBuilder, arrow_table, frame_kind

NAN = float("nan")
EXPECTED = pa.table({"id": [1, 2], "x": [0.5, None], "name": ["a", "b"]})


class Stream:
    """Speaks the C interface of Arrow and nothing else."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return EXPECTED.__arrow_c_stream__(requested_schema)


class Array:
    """One batch, through the C interface."""

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return EXPECTED.combine_chunks().to_batches()[0].__arrow_c_array__(requested_schema)


class Numbers:
    """A column without a name, through the C interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.chunked_array([[1]]).__arrow_c_stream__(requested_schema)


def frames() -> dict[str, Any]:
    return {
        "table": EXPECTED,
        "batch": EXPECTED.combine_chunks().to_batches()[0],
        "reader": EXPECTED.to_reader(),
        "batches": EXPECTED.to_batches(max_chunksize=1),
        "struct array": EXPECTED.to_struct_array(),
        "stream": Stream(),
        "array": Array(),
        "pandas": EXPECTED.to_pandas(),
        "polars": pl.from_arrow(EXPECTED),
        "lazy polars": pl.from_arrow(EXPECTED).lazy(),
        "duckdb": duckdb.connect().sql("FROM (VALUES (1::BIGINT, 0.5::DOUBLE, 'a'), (2, NULL, 'b')) AS t(id, x, name)"),
        "dict": {"id": [1, 2], "x": (0.5, None), "name": np.array(["a", "b"], object)},
        "dict of columns": {"id": pl.Series([1, 2]), "x": pd.Series([0.5, None]), "name": pa.array(["a", "b"])},
        "dicts": [{"id": 1, "x": 0.5, "name": "a"}, {"id": 2, "name": "b"}],
    }


@pytest.mark.parametrize("name", frames())
def test_everything_at_hand_becomes_the_same_table(name: str) -> None:
    table = arrow_table("stream 'R'", frames()[name])
    assert table.cast(EXPECTED.schema).equals(EXPECTED)


@pytest.mark.parametrize("name", frames())
def test_a_topology_takes_them(name: str) -> None:
    builder = TopologyBuilder("through")
    builder.input("in")
    builder.sink().global_grouping("in")
    with LocalRuntime().launch(builder.build()) as running:
        assert running.send("in", frames()[name]) == 2
        running.finish()
        assert [row for rows in running.results() for row in rows.to_pylist()] == EXPECTED.to_pylist()


def test_kinds_are_told_apart() -> None:
    kinds = {name: frame_kind(frame) for name, frame in frames().items()}
    assert kinds["pandas"] is FrameKind.PANDAS
    assert kinds["polars"] is FrameKind.POLARS
    assert kinds["lazy polars"] is FrameKind.LAZY_POLARS
    assert kinds["duckdb"] is FrameKind.DUCKDB
    assert kinds["dict"] is kinds["dicts"] is kinds["dict of columns"] is FrameKind.PYTHON
    assert {kinds[name] for name in ("table", "batch", "reader", "batches", "stream", "array")} == {FrameKind.ARROW}
    assert frame_kind(pl.Series([1])) is frame_kind(pa.array([1])) is frame_kind(5) is frame_kind("x") is None


def test_recognising_frames_imports_no_library() -> None:
    program = "import sys, topology; topology.arrow_table('R', {'a': [1]}); "  # makes Arrow look for pandas
    program += "print([name for name in ('polars', 'duckdb', 'pyspark') if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_named_pandas_index_is_a_column_and_an_unnamed_one_is_not() -> None:
    frame = pd.DataFrame({"x": [1, 2]})
    assert arrow_table("R", frame).schema.names == ["x"]
    assert arrow_table("R", frame[frame.x > 1]).to_pylist() == [{"x": 2}]
    times = pd.DatetimeIndex(["2024-01-01", "2024-01-02"], name="ts", tz="Europe/Vienna")
    indexed = arrow_table("R", frame.set_index(times))
    assert indexed.schema == pa.schema({"ts": pa.timestamp("ns", "Europe/Vienna"), "x": pa.int64()})
    levels = frame.set_index(pd.MultiIndex.from_tuples([(1, "a"), (2, "b")], names=["k", None]))
    assert arrow_table("R", levels).to_pylist() == [{"k": 1, "x": 1}, {"k": 2, "x": 2}]


def test_pandas_types_keep_their_meaning() -> None:
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None], "Int64"),
            "text": pd.array(["a", None], "string"),
            "category": pd.Categorical(["u", "v"]),
            "sparse": pd.arrays.SparseArray([0, 1]),
            "period": pd.period_range("2024-01", periods=2, freq="M"),
            "gap": [1.5, NAN],
            "objects": ["a", NAN],
            7: [True, False],
        }
    )
    table = arrow_table("R", frame)
    assert table.schema.names == ["whole", "text", "category", "sparse", "period", "gap", "objects", "7"]
    assert pa.types.is_dictionary(table.schema.field("category").type)
    shown = table.drop_columns(["period"]).to_pylist()[1]
    assert shown == {
        "whole": None,
        "text": None,
        "category": "v",
        "sparse": 1,
        "gap": None,
        "objects": None,
        "7": False,
    }
    assert table["period"].to_pandas().equals(frame["period"])


def test_nan_of_polars_and_of_lists_stays_nan() -> None:
    for rows in (pl.DataFrame({"x": [NAN, None]}), {"x": [NAN, None]}, [{"x": NAN}, {"x": None}]):
        nan, null = arrow_table("R", rows)["x"].to_pylist()
        assert math.isnan(nan)
        assert null is None


def test_an_empty_frame_keeps_its_columns() -> None:
    frame = pd.DataFrame({"id": [1], "name": ["a"]})
    assert arrow_table("R", frame[frame.id > 5]).schema == pa.schema({"id": pa.int64(), "name": pa.string()})
    assert arrow_table("R", pl.DataFrame({"id": [1]}).clear()).schema == pa.schema({"id": pa.int64()})
    assert arrow_table("R", EXPECTED.slice(0, 0).to_reader()).schema == EXPECTED.schema
    assert arrow_table("R", [], EXPECTED.schema).equals(EXPECTED.slice(0, 0))


def test_python_values_take_the_types_of_their_stream() -> None:
    schema = pa.schema({"id": pa.int32(), "x": pa.float64(), "day": pa.date32()})
    first = {"x": [1, 2], "id": [1, 2], "day": [None, None]}
    assert arrow_table("R", first, schema).schema == schema
    assert arrow_table("R", pd.DataFrame({"id": [1.0], "x": [1], "day": [None]}), schema).schema == schema
    rows = [{"id": 1, "x": 2, "day": datetime.date(2024, 2, 29)}]
    assert arrow_table("R", rows, schema).to_pylist() == rows


def test_a_topology_gives_later_rows_the_types_of_the_first() -> None:
    builder = TopologyBuilder("through")
    builder.input("in")
    builder.sink().global_grouping("in")
    with LocalRuntime().launch(builder.build()) as running:
        running.send("in", [{"a": 0.5, "b": "x"}])
        running.send("in", [{"b": None, "a": 1}])
        running.send("in", [])
        with pytest.raises(SchemaError, match="stream 'in': column 'a' does not become an Arrow column"):
            running.send("in", [{"a": "text", "b": "x"}])
        running.finish()
        assert [row for rows in running.results() for row in rows.to_pylist()] == [
            {"a": 0.5, "b": "x"},
            {"a": 1.0, "b": None},
        ]


REFUSED: list[tuple[str, Any, str]] = [
    ("text", "file.csv", "not str$"),
    ("a number", 5, "not int$"),
    ("a list of numbers", [1], "not a list of int$"),
    ("a column", pl.Series([1]), "not Series$"),
    ("an Arrow column", pa.array([1]), "not Int64Array$"),
    ("nothing", [], "neither rows nor columns"),
    ("a scalar column", {"x": 1}, "column 'x' must be a list or an array, not int"),
    ("columns of different lengths", {"x": [1], "y": [1, 2]}, "'x' has 1, 'y' has 2"),
    ("dicts and others", [{"x": 1}, 5], "takes a list of dicts, but it holds int, too"),
    ("mixed objects", pd.DataFrame({"x": [1, "a"]}), "column 'x' does not become an Arrow column: Could not"),
    ("a column through the C interface", Numbers(), "Numbers is not read as Arrow rows with named"),
    ("objects of Polars", pl.DataFrame({"x": pl.Series([object()], dtype=pl.Object)}), "'x' holds Python objects"),
    ("a type of Polars alone", pl.DataFrame({"x": pl.Series([1], dtype=pl.Int128)}), "DataFrame is not read as Arrow"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_is_not_rows_is_refused_by_name(rows: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        arrow_table("stream 'R'", rows)
    assert str(refused.value).startswith("stream 'R'")


def test_a_spark_frame_is_sent_to_the_bridge() -> None:
    spark = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe", "__arrow_c_stream__": None})
    with pytest.raises(InputError, match=r"stream 'R' takes .* il.feed\(df, running, stream\), or .* il.join"):
        arrow_table("stream 'R'", spark())
