"""What may enter a stream. Whatever is refused leaves no trace: the guard goes on as if it had never come."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from topology import Input, InputError, OutOfOrderError, SchemaError, SourceEndedError
from topology.entry.input_guard import InputGuard

SCHEMA = pa.schema([("ts", pa.int64()), ("v", pa.string())])


def rows(*times: int | None, schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    columns = [pa.array(times, pa.int64()), pa.array(["x"] * len(times), pa.string())]
    return pa.record_batch(columns, schema=schema)


def guard(**settings: Any) -> InputGuard:
    return InputGuard("R", Input(**{"event_time": "ts"} | settings))


def admit(guarded: InputGuard, batch: pa.RecordBatch, source: str = "R-0") -> tuple[int, tuple[Any, Any] | None]:
    made = guarded.check(batch, source)
    guarded.record(made)
    return made.first, made.times


def state(guarded: InputGuard) -> tuple[object, ...]:
    attempts = {key: (known.rows, known.latest) for key, known in guarded._attempts.items()}
    sources = {name: (known.rows, known.latest, known.ended) for name, known in guarded._sources.items()}
    return guarded.schema, sources, attempts


def test_rows_are_numbered_per_source_and_carry_their_time_bounds() -> None:
    guarded = guard()
    assert admit(guarded, rows(1, 1, 4)) == (0, (1, 4))
    assert admit(guarded, rows(2), "R-1") == (0, (2, 2))
    assert admit(guarded, rows(4, 9)) == (3, (4, 9))
    assert guarded.sources == {"R-0": 5, "R-1": 1}


def test_without_an_event_time_the_row_number_is_the_time() -> None:
    guarded = guard(event_time=None)
    assert admit(guarded, rows(9, 3, 1)) == (0, (0, 2))
    assert admit(guarded, rows(0)) == (3, (3, 3))


def test_rows_that_have_no_time_do_not_move_time() -> None:
    guarded = guard()
    assert admit(guarded, rows(5, None, 6)) == (0, (5, 6))
    assert admit(guarded, rows(None)) == (3, None)
    assert admit(guarded, rows()) == (4, None)
    assert admit(guarded, rows(6)) == (4, (6, 6))


def test_a_batch_counts_only_once_it_is_on_its_way() -> None:
    guarded = guard()
    interrupted = guarded.check(rows(1, 2), "R-0")
    again = guarded.check(rows(1, 2), "R-0")
    assert (interrupted.first, again.first) == (0, 0)
    assert guarded.sources == {}


def test_the_first_batch_pins_the_schema() -> None:
    guarded = guard()
    admit(guarded, rows(1))
    assert guarded.schema == SCHEMA


def test_metadata_of_a_schema_does_not_matter() -> None:
    guarded = guard(schema=SCHEMA)
    admit(guarded, rows(1, schema=SCHEMA.with_metadata({"written by": "someone else"})))


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
    before = state(guarded)
    empty = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
    calls: list[Callable[[], object]] = [
        lambda: guarded.check(empty, "R-0"),
        lambda: guarded.stage(empty, "R-0", "1"),
        lambda: guarded.pin(schema),
    ]
    for call in calls:
        with pytest.raises(SchemaError) as caught:
            call()
        assert str(caught.value).startswith("stream 'R': ")
        assert said in str(caught.value)
    assert state(guarded) == before


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
    before = state(guarded)
    for call in (lambda: guarded.check(batch, "R-0"), lambda: guarded.pin(batch.schema)):
        with pytest.raises(SchemaError, match=said):
            call()
    assert state(guarded) == before
    assert admit(guarded, rows(1)) == (0, (1, 1))


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
    admit(guarded, rows(1, 5))
    before = state(guarded)
    with pytest.raises(OutOfOrderError) as caught:
        guarded.check(batch, "R-0")
    assert said in str(caught.value)
    assert "source 'R-0'" in str(caught.value)
    assert "sort each source by 'ts'" in str(caught.value)
    assert state(guarded) == before
    assert admit(guarded, rows(5)) == (2, (5, 5))


def test_time_that_goes_backwards_in_the_very_first_batch_pins_no_schema() -> None:
    guarded = guard()
    with pytest.raises(OutOfOrderError):
        guarded.check(rows(2, 1), "R-0")
    assert state(guarded) == (None, {}, {})


def test_sources_keep_their_own_time() -> None:
    guarded = guard()
    admit(guarded, rows(100), "late")
    assert admit(guarded, rows(1), "early") == (0, (1, 1))


def test_an_ended_source_sends_no_more() -> None:
    guarded = guard()
    admit(guarded, rows(1))
    assert guarded.end("R-0") == ["R-0"]
    assert guarded.end("R-0") == []
    with pytest.raises(SourceEndedError, match="source 'R-0' has ended"):
        guarded.check(rows(2), "R-0")
    assert guarded.sources == {"R-0": 1}


def test_ending_all_names_those_that_had_not_ended() -> None:
    guarded = guard()
    for source in "abc":
        guarded.open(source)
    guarded.end("b")
    assert guarded.end(None) == ["a", "c"]


def test_ending_an_unknown_source_names_the_known() -> None:
    guarded = guard()
    guarded.open("R-0")
    with pytest.raises(InputError, match="no source 'R-1'; its sources: 'R-0'"):
        guarded.end("R-1")


def test_announcing_a_source_twice_is_harmless() -> None:
    guarded = guard()
    assert guarded.open("R-0")
    assert not guarded.open("R-0")
    with pytest.raises(InputError, match="needs a name"):
        guarded.open("")


def test_attempts_are_checked_each_by_itself() -> None:
    guarded = guard()
    guarded.stage(rows(5), "p", "1")
    guarded.stage(rows(1), "p", "2")
    before = state(guarded)
    with pytest.raises(OutOfOrderError, match=r"row 1 \(5 is followed by 4\)"):
        guarded.stage(rows(4), "p", "1")
    assert state(guarded) == before
    guarded.stage(rows(4), "p", "2")


def test_a_committed_source_belongs_to_its_attempt() -> None:
    guarded = guard()
    guarded.stage(rows(1), "p", "1")
    guarded.stage(rows(1), "q", "1")
    assert guarded.claim("p")
    assert list(guarded._attempts) == [("q", "1")]
    with pytest.raises(SourceEndedError):
        guarded.check(rows(1), "p")
    assert guarded.check(rows(1), "p", committed=True).first == 0
    assert guarded.end("p") == []
    assert guarded.end("p", committed=True) == ["p"]


def test_an_announced_source_may_be_claimed_but_not_one_that_sent_rows_or_ended() -> None:
    guarded = guard()
    guarded.open("announced")
    assert not guarded.claim("announced")
    admit(guarded, rows(1), "sent")
    guarded.open("ended")
    guarded.end("ended")
    for source in ("sent", "ended"):
        with pytest.raises(InputError, match="use another source name"):
            guarded.claim(source)


def test_a_finished_stream_takes_nothing_more() -> None:
    guarded = guard()
    assert guarded.finish()
    assert not guarded.finish()
    calls: list[Callable[[], object]] = [
        lambda: guarded.open("R-0"),
        lambda: guarded.check(rows(1), "R-0"),
        lambda: guarded.stage(rows(1), "R-0", "1"),
        lambda: guarded.claim("R-0"),
    ]
    for call in calls:
        with pytest.raises(SourceEndedError, match="stream 'R' has been finished"):
            call()
    assert state(guarded) == (None, {}, {})
