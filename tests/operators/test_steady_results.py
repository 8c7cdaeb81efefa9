"""Results of every kind have one schema from when both streams' schemas are known."""

from __future__ import annotations

import pyarrow as pa
import pytest

from operators import StreamJoin, TimeWindow, count, max, min, sum
from operators.query.kinds import Kind
from operators.steady_results import conformed

AGGREGATE = "aggregate"
KINDS = [*(str(kind) for kind in Kind if not kind.is_as_of and not kind.is_aggregate), AGGREGATE]
R = pa.schema({"ts": pa.int64(), "x": pa.float64()})
S = pa.schema(
    {
        "ts": pa.int64(),
        "x": pa.float32(),
        "word": pa.dictionary(pa.int8(), pa.string()),
        "day": pa.timestamp("us", "Europe/Vienna"),
        "parts": pa.list_(pa.int64()),
    }
)


def join(kind: str, select: list[str] | None = None) -> StreamJoin:
    if kind == AGGREGATE:
        values = {"n": count(), "most": max("S.day"), "least": min("S.word"), "sum": sum("S.x")}
        return StreamJoin("R", "S", "R.x < S.x", TimeWindow(5), aggregate=values, event_time="ts", step_rows=10)
    return StreamJoin("R", "S", "R.x < S.x", TimeWindow(5), kind=kind, event_time="ts", select=select, step_rows=10)


def rows(schema: pa.Schema, *times: int) -> pa.RecordBatch:
    made = [{"ts": time, "x": float(time), "word": "a"} for time in times]
    return pa.RecordBatch.from_pylist(made, schema=schema)


@pytest.mark.parametrize("kind", KINDS)
def test_results_before_and_after_the_first_rows_of_a_stream_have_one_schema(kind: str) -> None:
    """R's rows expire before S sends its first: the results of the two halves differ in what the collector knows."""
    with join(kind).launch(sources={"R": ["R"], "S": ["S"]}) as running:
        running.pin("R", R)
        running.pin("S", S)
        expected = running.result_schema()
        running.send("R", rows(R, *range(100)))
        running.send("S", rows(S, 90, 91, 99))
        running.finish()
        batches = list(running.results())
        assert batches
        assert all(batch.schema.equals(expected) for batch in batches)
        found = pa.Table.from_batches(batches)
    collected = join(kind).collect({"R": rows(R, *range(100)), "S": rows(S, 90, 91, 99)})
    assert found.to_pylist() == collected.to_pylist()


@pytest.mark.parametrize("kind", ["left", "full", "count", "anti"])
@pytest.mark.parametrize("select", [None, ["R.x"]])
def test_a_stream_that_is_pinned_and_sends_nothing_shows_its_columns(kind: str, select: list[str] | None) -> None:
    with join(kind, select).launch() as running:
        running.pin("S", S)
        running.send("R", rows(R, 1, 2))
        running.finish()
        (batch,) = running.results()
        assert batch.schema.equals(running.result_schema())
        assert batch.num_rows == 2
        for field in batch.schema:
            if field.name.startswith("S."):
                assert batch.column(field.name).null_count == 2


def test_the_schema_settles_when_the_second_stream_becomes_known() -> None:
    with join("left").launch(sources={"R": ["R"], "S": ["S"]}) as running:
        running.send("R", rows(R, 1, 2, 50))
        running.finish("S", "S")
        unknown = [next(running.results(timeout=30))]  # S is not known: its columns are left out
        assert unknown[0].schema.names == ["R.ts", "R.x"]
        running.pin("S", S)
        running.finish()
        batches = list(running.results())
        assert batches
        assert all(batch.schema.equals(running.result_schema()) for batch in batches)


def test_numbers_do_not_change_when_columns_are_filled_in() -> None:
    with join("left").launch() as running:
        running.pin("S", S)
        running.send("R", rows(R, 1, 2))
        running.finish()
        ((first, batch),) = running.results(numbered=True)
        assert (first, batch.num_rows) == (0, 2)
        running.acknowledge(1)


def test_columns_that_are_missing_or_of_no_type_are_null() -> None:
    schema = pa.schema({"S.x": S.field("x").type, "R.x": pa.float64(), "S.word": S.field("word").type})
    made = conformed(pa.record_batch({"R.x": [1.0], "S.word": pa.nulls(1)}), schema)
    assert made.schema.equals(schema)
    assert made.to_pylist() == [{"S.x": None, "R.x": 1.0, "S.word": None}]
    assert conformed(made, schema) is made
