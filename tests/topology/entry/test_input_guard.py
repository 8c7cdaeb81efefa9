"""Which rows may enter a stream. A refused batch leaves no trace: the guard goes on as if it had never come."""

from typing import Any

import pyarrow as pa
import pytest

from topology import Input, InputGuard, OutOfOrderError, SchemaError

SCHEMA = pa.schema([("ts", pa.int64()), ("v", pa.string())])


def rows(*times: int | None, schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    columns = [pa.array(times, pa.int64()), pa.array(["x"] * len(times), pa.string())]
    return pa.record_batch(columns, schema=schema)


def guard(**settings: Any) -> InputGuard:
    return InputGuard("R", Input(**{"event_time": "ts"} | settings))


def test_the_first_batch_that_passes_pins_the_schema() -> None:
    guarded = guard()
    with pytest.raises(OutOfOrderError):
        guarded.check(rows(2, 1), "R-0")
    assert guarded.schema is None
    guarded.check(rows(1), "R-0")
    assert guarded.schema == SCHEMA


def test_metadata_of_a_schema_does_not_matter() -> None:
    guarded = guard(schema=SCHEMA)
    guarded.check(rows(1, schema=SCHEMA.with_metadata({"written by": "someone else"})), "R-0")


OTHER_SCHEMAS: list[tuple[pa.Schema, str]] = [
    (pa.schema([("ts", pa.int64())]), "column 'v' is missing"),
    (pa.schema([*SCHEMA, pa.field("w", pa.int64())]), "column 'w' is not expected"),
    (pa.schema([("ts", pa.int64()), ("v", pa.int64())]), "'v' is int64, expected string"),
    (pa.schema([("ts", pa.int64()), ("w", pa.string())]), "column 'v' is missing; column 'w' is not expected"),
    (pa.schema([("v", pa.string()), ("ts", pa.int64())]), "in the order ts, v"),
    (pa.schema([("ts", pa.int64(), False), ("v", pa.string())]), "same nullability"),
    (pa.schema([("ts", pa.int64()), ("v", pa.string()), ("v", pa.string())]), "'v' appears more than once"),
]


@pytest.mark.parametrize(("schema", "said"), OTHER_SCHEMAS, ids=[said for _, said in OTHER_SCHEMAS])
def test_another_schema_is_refused_with_the_difference(schema: pa.Schema, said: str) -> None:
    guarded = guard(schema=SCHEMA)
    empty = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
    for call in (lambda: guarded.check(empty, "R-0"), lambda: guarded.pin(schema)):
        with pytest.raises(SchemaError) as caught:
            call()
        assert str(caught.value).startswith("stream 'R': ")
        assert said in str(caught.value)
    assert guarded.schema == SCHEMA


def refuse_without_v(schema: pa.Schema) -> None:
    if "v" not in schema.names:
        raise SchemaError("the join needs 'v'")


FIRST_SCHEMAS: list[tuple[dict[str, Any], pa.RecordBatch, str]] = [
    ({}, pa.record_batch({"v": ["x"]}), "event-time column 'ts' is missing"),
    ({}, pa.record_batch({"ts": ["x"]}), "must be a timestamp"),
    ({"check": refuse_without_v}, pa.record_batch({"ts": [1]}), "the join needs 'v'"),
    ({}, pa.record_batch([pa.array([1]), pa.array([1])], names=["ts", "ts"]), "'ts' appears more than once"),
]


@pytest.mark.parametrize(("settings", "batch", "said"), FIRST_SCHEMAS, ids=[said for _, _, said in FIRST_SCHEMAS])
def test_a_first_schema_that_cannot_work_is_refused_and_not_pinned(
    settings: dict[str, Any], batch: pa.RecordBatch, said: str
) -> None:
    guarded = guard(**settings)
    for call in (lambda: guarded.check(batch, "R-0"), lambda: guarded.pin(batch.schema)):
        with pytest.raises(SchemaError, match=said):
            call()
    assert guarded.schema is None
    assert guarded.check(rows(1), "R-0") == (1, 1)


def test_a_description_with_a_schema_that_cannot_work_is_refused_at_once() -> None:
    with pytest.raises(SchemaError, match="event-time column 'ts' is missing"):
        guard(schema=pa.schema([("v", pa.string())]))


BACKWARDS: list[tuple[pa.RecordBatch, str]] = [
    (rows(4), "goes backwards at row 2 (5 is followed by 4)"),
    (rows(5, 7, 6), "goes backwards at row 4 (7 is followed by 6)"),
    (rows(None, 3), "goes backwards at row 3 (5 is followed by 3)"),
    (rows(6, None, 5), "goes backwards at row 4 (6 is followed by 5)"),
]


@pytest.mark.parametrize(("batch", "said"), BACKWARDS, ids=[said for _, said in BACKWARDS])
def test_time_that_goes_backwards_is_refused_with_the_row(batch: pa.RecordBatch, said: str) -> None:
    guarded = guard()
    with pytest.raises(OutOfOrderError) as caught:
        guarded.check(batch, "R-0", first=2, latest=5)
    assert said in str(caught.value)
    assert "source 'R-0'" in str(caught.value)
    assert "sort each source by 'ts'" in str(caught.value)


def test_the_bounds_of_a_disordered_batch_are_its_smallest_and_largest_time() -> None:
    assert guard(disordered=True).check(rows(5, None, 2, 9, 7), "R-0", first=3, latest=8) == (2, 9)
