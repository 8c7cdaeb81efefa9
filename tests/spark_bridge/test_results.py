from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import spark_bridge.results
from spark_bridge import ResultsLostError, feed, results_dataframe
from spark_bridge.results_spool import CELL_BYTES, UnpackRows, packed, schema_in
from spark_bridge.schemas import spark_ready, spark_schema
from tests.spark_bridge import faulty_functions
from tests.spark_bridge.readings import join, plain, readings
from topology import (
    Input,
    InputError,
    LocalRuntime,
    MapBatches,
    RunningTopology,
    SchemaError,
    TaskError,
    TopologyBuilder,
    TopologyError,
)


def doubled(rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"a": rows.column("a"), "b": pc.multiply(rows.column("a"), 2)})


def broken(rows: pa.RecordBatch) -> pa.RecordBatch:
    raise ValueError("planted: the component failed")


def launch(function: object, *sinks: str) -> RunningTopology:
    builder = TopologyBuilder("map")
    builder.input("in", Input())
    builder.bolt("map", MapBatches(function, None)).global_grouping("in")  # type: ignore[arg-type]
    for sink in sinks or ("results",):
        builder.sink(sink).global_grouping("map")
    return LocalRuntime().launch(builder.build())


def numbers(count: int) -> pa.RecordBatch:
    return pa.record_batch({"a": pa.array(range(count), pa.int64())})


def test_results_can_be_used_again_and_again_in_order(spark: SparkSession) -> None:
    with launch(doubled) as running:
        for _ in range(3):
            running.send("in", numbers(1000))
        frame = results_dataframe(running, spark)
        expected = [(value, 2 * value) for _ in range(3) for value in range(1000)]
        assert frame.count() == 3000
        assert plain(frame.toArrow()) == expected
        with pytest.raises(InputError, match="keep the DataFrame of the first call"):
            results_dataframe(running, spark)
    assert plain(frame.toArrow()) == expected, "the DataFrame outlives the topology"
    assert frame.where("b > 1990").count() == 12


def test_no_results_are_an_empty_frame(spark: SparkSession) -> None:
    with join().launch(LocalRuntime()) as running:
        feed(readings(spark, 10, 1, seed=1), running, stream="R", progress=False)
        frame = results_dataframe(running, spark)
    assert frame.columns == ["R_id", "S_id", "S_ts"]
    assert frame.count() == 0
    with launch(doubled) as silent:
        assert results_dataframe(silent, spark).count() == 0


def test_finishing_can_be_left_to_someone_else(spark: SparkSession) -> None:
    with launch(doubled) as running:
        running.send("in", numbers(5))
        running.finish()
        assert results_dataframe(running, spark, finish=False).count() == 5


def test_the_sink_must_be_one_that_exists(spark: SparkSession) -> None:
    with launch(doubled, "one", "two") as running:
        with pytest.raises(TopologyError, match="one of: one, two"):
            results_dataframe(running, spark)
        with pytest.raises(TopologyError, match="one of: one, two"):
            results_dataframe(running, spark, sink="three")
        running.send("in", numbers(5))
        assert results_dataframe(running, spark, sink="two").count() == 5
        assert results_dataframe(running, spark, sink="one").count() == 5


def test_a_failed_component_is_reported_with_its_own_traceback(spark: SparkSession) -> None:
    running = launch(broken)
    running.send("in", numbers(5))
    with pytest.raises(TaskError, match="component 'map', task 0, failed: ValueError: planted"):
        results_dataframe(running, spark, finish=False)
    with pytest.raises(TaskError):
        running.stop()


def test_results_of_a_reader_that_died_are_lost_loudly(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_bridge.results, "ReadSink", faulty_functions.DiesWhileReading)
    with launch(doubled) as running:
        running.send("in", numbers(1000))
        with pytest.raises(ResultsLostError, match="run the topology again"):
            results_dataframe(running, spark)


def cells(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    return list(packed(iter(batches)))


def test_small_batches_are_gathered_and_large_ones_cut() -> None:
    small = cells([numbers(10)] * 500)
    assert [cell.num_rows for cell in small] == [1, 1]  # the schema, then all rows
    assert schema_in(small[0].column(0)[0].as_py()) == numbers(0).schema
    assert sum(rows.num_rows for rows in UnpackRows(numbers(0).schema)(small)) == 5000
    large = cells([numbers(3 * CELL_BYTES // 8)])
    assert len(large) == 4
    assert pa.Table.from_batches(UnpackRows(numbers(0).schema)(large))["a"].to_pylist()[-1] == 3 * CELL_BYTES // 8 - 1
    assert cells([]) == []


def test_batches_of_another_schema_are_kept_apart() -> None:
    def both() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": pa.array([1], pa.int32())})
        yield pa.record_batch({"a": pa.array([2], pa.int64())})

    schema = pa.schema([("a", pa.int64())])
    assert [row["a"] for rows in UnpackRows(schema)(packed(both())) for row in rows.to_pylist()] == [1, 2]


def test_types_that_spark_lacks_become_types_that_hold_them() -> None:
    given = pa.schema(
        [
            ("u", pa.uint64()),
            ("d", pa.dictionary(pa.int8(), pa.string())),
            ("t", pa.timestamp("ns", "Europe/Berlin")),
            ("n", pa.timestamp("s")),
            ("x", pa.null()),
        ]
    )
    ready = spark_ready(given)
    assert ready.types == [pa.decimal128(20, 0), pa.string(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.null()]
    assert spark_schema(ready).simpleString() == ("struct<u:decimal(20,0),d:string,t:timestamp,n:timestamp_ntz,x:void>")
    with pytest.raises(SchemaError, match="result column 'i' is month_day_nano_interval"):
        spark_schema(pa.schema([("i", pa.month_day_nano_interval())]))


def test_columns_that_were_not_known_yet_are_null() -> None:
    """The rows of a left join from before the right stream had sent any."""
    schema = pa.schema([("R.a", pa.int64()), ("S.a", pa.string()), ("S.b", pa.int64())])

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"R.a": [1]})
        yield pa.record_batch({"R.a": [2], "S.a": pa.nulls(1), "S.b": [3]})

    rows = pa.Table.from_batches(UnpackRows(schema)(packed(batches())), schema)
    assert rows.to_pylist() == [{"R.a": 1, "S.a": None, "S.b": None}, {"R.a": 2, "S.a": None, "S.b": 3}]
