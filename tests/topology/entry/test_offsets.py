"""Offsets: rows that are sent again are dropped, gaps are refused, and every row enters once."""

from __future__ import annotations

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

from topology import (
    FlightClient,
    Input,
    InputError,
    LocalRuntime,
    OffsetGapError,
    RunningTopology,
    SourceEndedError,
    TopologyBuilder,
)
from topology.entry.ingest import Ingest


def launch(edge_bytes: int = 8_000_000) -> RunningTopology:
    builder = TopologyBuilder("offsets")
    builder.input("in")
    builder.sink().shuffle_grouping("in")
    return LocalRuntime(edge_bytes=edge_bytes).launch(builder.build())


def rows(first: int, count: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(first, first + count), pa.int64())})


def read(running: RunningTopology) -> list[int]:
    running.finish()
    return [value for batch in running.results() for value in batch.column("n").to_pylist()]


@given(st.lists(st.tuples(st.none() | st.integers(0, 30), st.integers(0, 8)), max_size=20))
def test_every_row_enters_once_whatever_is_sent_again(sends: list[tuple[int | None, int]]) -> None:
    """Each row is its own offset, so that a row that enters twice, or is left out, shows."""
    taken: list[int] = []
    ingest = Ingest()
    ingest.add("in", Input(), lambda message: taken.extend(message.rows.column("n").to_pylist()))  # type: ignore[union-attr]
    count = 0
    for offset, length in sends:
        batch = rows(count if offset is None else offset, length)
        if offset is not None and offset > count:
            with pytest.raises(OffsetGapError, match=f"those from {count} to {offset - 1} are missing"):
                ingest.send("in", "a", batch, offset)
        else:
            count = max(count, (count if offset is None else offset) + length)
            assert ingest.send("in", "a", batch, offset) == count
        assert ingest.next_offset("in", "a") == count
    assert taken == list(range(count))


def test_send_returns_the_next_offset_of_its_source() -> None:
    with launch() as running:
        assert running.next_offset("in", "a") == 0
        assert running.send("in", rows(0, 3), "a") == 3
        assert running.send("in", pa.Table.from_batches([rows(3, 2), rows(5, 1)]), "a") == 6
        assert running.send("in", rows(0, 0), "a") == 6
        assert running.send("in", rows(0, 1)) == 1
        assert running.next_offset("in", "a") == 6
        assert running.next_offset("in") == running.next_offset("in", "in") == 1
        assert running.send("in", pa.Table.from_batches([rows(4, 1), rows(5, 3)]), "a", offset=4) == 8
        assert running.send("in", rows(0, 2), "a", offset=0) == 8
        assert sorted(read(running)) == [0, *range(8)]


def test_a_gap_changes_nothing() -> None:
    with launch() as running:
        with pytest.raises(OffsetGapError, match=r"source 'a'.*from 0 to 4 are missing.*next_offset\(\), which is 0"):
            running.send("in", pa.record_batch({"text": ["x"]}), "a", offset=5)
        assert running.schema("in") is None
        running.send("in", rows(0, 2), "a")
        with pytest.raises(OffsetGapError):
            running.send("in", rows(3, 2), "a", offset=3)
        assert running.next_offset("in", "a") == 2
        for wrong in (-1, 1.0, "2", True):
            with pytest.raises(InputError, match="offset must be a whole number"):
                running.send("in", rows(0, 2), "a", offset=wrong)  # type: ignore[arg-type]
        assert read(running) == [0, 1]


def test_rows_that_are_there_are_dropped_even_when_their_source_has_ended() -> None:
    with launch() as running:
        running.send("in", rows(0, 4), "a")
        running.finish("in", "a")
        assert running.send("in", rows(1, 3), "a", offset=1) == 4
        with pytest.raises(SourceEndedError):
            running.send("in", rows(1, 4), "a", offset=1)
        running.finish()
        assert running.send("in", rows(0, 4), "a", offset=0) == 4
        assert [value for batch in running.results() for value in batch.column("n").to_pylist()] == [0, 1, 2, 3]


def test_offsets_travel_with_pipelined_batches() -> None:
    with launch() as running, FlightClient(running.endpoint("in", control=True)) as client:
        for first in range(0, 3_000, 10):
            assert client.send("in", "a", rows(first, 10), offset=first) == 10
            if first % 70 == 0:
                client.send("in", "a", rows(max(0, first - 25), 30), offset=max(0, first - 25))
            client.send("in", "b", rows(first, 10))
        assert client.sent_offset("in", "b") == 3_000
        with pytest.raises(OffsetGapError, match="from 3000 to 3999 are missing"):
            client.send("in", "a", rows(4_000, 1), offset=4_000)
        assert client.next_offset("in", "a") == client.next_offset("in", "b") == 3_000
        assert client.next_offset("in", "unknown") == 0
        with FlightClient(running.endpoint("in")) as another:
            another.send("in", "a", rows(2_990, 20), offset=2_990)
        assert client.send("in", "a", rows(3_010, 1), offset=3_010) == 1, "another client has sent those before"
        client.flush()
        assert sorted(read(running)) == sorted([*range(3_011), *range(3_000)])


def test_after_a_refusal_the_offset_is_asked_for_again() -> None:
    with launch() as running, FlightClient(running.endpoint("in")) as client:
        client.send("in", "a", rows(0, 5))
        assert client.sent_offset("in", "a") == 5
        with pytest.raises(InputError):
            client.send("in", "a", pa.record_batch({"other": [1]}))
        assert client.sent_offset("in", "a") == 5
        client.send("in", "a", rows(3, 5), offset=3)
        client.flush()
        assert read(running) == list(range(8))


@pytest.mark.parametrize("metadata", [b"a\0", b"a\0-1", b"a\0x", b"a\0" + b"9" * 30, b"a\0" + b"1\0" + b"2"])
def test_an_offset_that_is_no_number_is_refused(metadata: bytes) -> None:
    from topology.flight.operations import read_source

    with pytest.raises(InputError, match="is not a number of rows"):
        read_source(metadata)
