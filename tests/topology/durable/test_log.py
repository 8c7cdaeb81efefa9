"""A log gives back what was committed, in order, from the start of any segment, on every kind of store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topology.durable.calls import CALLS, make_calls
from tests.topology.durable.stores import KINDS, all_records, new_store, numbered, numbers, started
from topology.durable import group
from topology.durable.open_store import open_store
from topology.durable.record import Position, Record
from topology.durable.steps import finish
from topology.durable.store import Store
from topology.durable.take_over import take_over, take_over_steps
from topology.graph.errors import FencedError, StoreError


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return new_store(request.param, tmp_path)


ROWS = pa.record_batch(
    {
        "id": pa.array([1, None, 3], pa.int64()),
        "name": pa.array(["a", "bb", None]),
        "tags": pa.array([["x"], [], ["y", "z"]]),
        "kind": pa.array(["p", "q", "p"]).dictionary_encode(),
    }
)


def test_records_come_back_as_they_were(store: Store) -> None:
    records = [
        Record({"source": "s", "offset": 7}, (ROWS, ROWS.slice(1, 1))),
        Record({}, ()),
        Record({"step": [1, None, "é"]}, (ROWS.drop_columns(["kind"]),)),
        Record({}, (ROWS.slice(0, 0), pa.record_batch({"other": pa.array([1.5])}))),
    ]
    log = started(store, Record({"start": True}, (ROWS,)))
    positions = [log.append(record) for record in records]
    assert log.commit() == positions[-1] == Position(1, 4)
    for reader in (log, take_over(store)):
        found = list(all_records(reader))
        assert [position for position, _ in found] == [Position(1, 0), *positions]
        for (_, got), sent in zip(found, [Record({"start": True}, (ROWS,)), *records], strict=True):
            assert got.header == sent.header
            assert len(got.batches) == len(sent.batches)
            for one, other in zip(got.batches, sent.batches, strict=True):
                one.validate(full=True)
                assert one.equals(other, check_metadata=True)


def test_a_changing_dictionary_and_the_metadata_of_a_schema_come_back(store: Store) -> None:
    log = started(store)
    sent = []
    for values in (["a", "b"], ["b", "c", "d"], ["a"]):
        rows = pa.record_batch({"k": pa.array(values).dictionary_encode()})
        sent.append(rows.replace_schema_metadata({"of": values[0]}))
        log.append(Record({}, (sent[-1],)))
    log.commit()
    got = [rows for _, record in all_records(take_over(store)) for rows in record.batches]
    assert all(one.equals(other, check_metadata=True) for one, other in zip(got, sent, strict=True))


def test_rows_of_every_type_come_back(store: Store) -> None:
    words = pa.array(["a", None, "ccc"])
    columns = [
        *(pa.nulls(3, kind) for kind in (pa.null(), pa.bool_(), pa.decimal128(20, 3), pa.timestamp("ns", "UTC"))),
        *(words.cast(kind) for kind in (pa.large_string(), pa.string_view(), pa.binary_view())),
        pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int8())),
        pa.array([{"x": ["a"]}, {"x": None}, None]),
        pa.array([{"x": "a"}, None, {"x": "b"}], pa.struct({"x": pa.dictionary(pa.int8(), pa.string())})),
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 3], pa.int32()), pa.array(["a", "b"])),
        pa.array([[1, 2], None, [3, 4]], pa.list_(pa.float32(), 2)),
        pa.array([bytes(16)] * 3, pa.uuid()),
    ]
    log = started(store)
    sent = [pa.record_batch({"c": column}) for column in columns]
    sent += [rows.slice(1) for rows in sent]
    for rows in sent:
        log.append(Record({}, (rows,)))
    log.commit()
    got = [rows for _, record in all_records(take_over(store)) for rows in record.batches]
    for one, other in zip(got, sent, strict=True):
        one.validate(full=True)
        assert one.schema == other.schema
        assert one.to_pylist() == other.to_pylist()


def test_reading_begins_at_any_segment(store: Store) -> None:
    log = started(store, numbered(-1))
    for number in range(6):
        log.append(numbered(number))
        if number % 2:
            assert log.rotate(numbered(-number)) == Position(log.segment, 0)
        log.commit()
    assert log.segments == [1, 2, 3, 4]
    later = take_over(store)
    assert later.segments == [1, 2, 3, 4]
    assert [record.header["n"] for _, record in later.records(3)] == [-3, 4, 5, -5]
    with pytest.raises(StoreError, match="segment 9 is not kept"):
        list(later.records(9))


def test_what_is_not_committed_is_not_there(store: Store) -> None:
    log = started(store)
    log.append(numbered(1))
    log.commit()
    log.append(numbered(2))
    assert numbers(log) == numbers(take_over(store)) == [1]


def test_columns_that_are_read_lie_at_multiples_of_eight(store: Store) -> None:
    log = started(store)
    for number in range(1, 9):
        log.append(Record({"x" * number: number}, (pa.record_batch({"n": pa.array(range(number), pa.int64())}),)))
        log.commit()
    batches = [rows for _, record in all_records(take_over(store)) for rows in record.batches]
    assert len(batches) == 8
    assert {rows.column("n").buffers()[1].address % 8 for rows in batches} == {0}


def test_a_schema_is_written_once_for_each_group(store: Store) -> None:
    rows = pa.record_batch({f"a long name of a column, number {number}": [number] for number in range(50)})
    log = started(store)
    sizes = [log.kept_bytes]
    for copies in (1, 2, 3):
        for _ in range(copies):
            log.append(Record({}, (rows,)))
        log.commit()
        sizes.append(log.kept_bytes)
    one, two, three = (after - before for before, after in pairwise(sizes))
    assert abs((three - two) - (two - one)) <= 16
    assert one > rows.schema.serialize().size > 1_000
    assert two - one < one - rows.schema.serialize().size


def test_before_its_first_commit_a_log_holds_nothing(store: Store) -> None:
    log = take_over(store).start(numbered(-1))
    log.append(numbered(1))
    assert list(all_records(log)) == []
    assert log.durable is None


def test_trimming_removes_what_comes_before_and_nothing_else(store: Store) -> None:
    log = started(store)
    for number in range(4):
        log.append(numbered(number))
        log.rotate(numbered(-1))
        log.commit()
    kept = log.kept_bytes
    log.trim(3)
    assert log.segments == take_over(store).segments == [3, 4, 5]
    assert log.kept_bytes < kept
    assert numbers(take_over(store)) == [2, 3]
    assert len(store.segments()) == 3


def test_one_mark_of_trimming_is_enough(store: Store) -> None:
    log = started(store)
    for _ in range(3):
        log.rotate(numbered(-1))
        log.commit()
        log.trim(log.segment)
    assert [name for name in store.marks() if name.startswith("kept-")] == [f"kept-000000000004-{log.epoch}"]


def test_a_fenced_writer_writes_nothing_more(store: Store) -> None:
    old = started(store)
    new = started(store)
    old.append(numbered(1))
    with pytest.raises(FencedError, match="another process has taken the log over"):
        old.commit()
    left = {name: [buffer.size for buffer in store.read(name)] for name in store.segments()}
    for call in (old.commit, lambda: old.append(numbered(2)), lambda: old.rotate(numbered(-1)), lambda: old.trim(1)):
        with pytest.raises(FencedError):
            call()
    assert left == {name: [buffer.size for buffer in store.read(name)] for name in store.segments()}
    assert numbers(new) == []


def test_of_two_that_take_over_at_once_one_is_told_before_it_reads(store: Store) -> None:
    first, second = (take_over_steps(store, f"{number:016x}") for number in (1, 2))
    for _ in range(3):  # both have chosen the same number
        next(first)
        next(second)
    assert finish(second).epoch == (1, f"{2:016x}")
    with pytest.raises(FencedError, match="at the same time"):
        finish(first)


def test_a_newer_format_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "VERSION", 2)
    started(store)
    with pytest.raises(StoreError, match="has version 2 of the format, and this program reads 1"):
        take_over(store)


def test_a_log_that_is_closed_has_no_open_files(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    log = started(open_store(tmp_path))
    log.rotate(numbered(-1))
    log.commit()
    assert len(os.listdir("/proc/self/fd")) == len(before) + 2
    log.close()
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_segment_that_is_not_durable_cannot_be_trimmed_to(store: Store) -> None:
    log = started(store)
    log.rotate(numbered(-1))
    with pytest.raises(ValueError, match="segment 2 has no durable start record"):
        log.trim(2)
    log.commit()
    log.trim(2)
    assert log.segments == [2]


def test_a_header_that_is_not_json_changes_nothing(store: Store) -> None:
    log = started(store)
    for header in ({"x": object()}, {"x": float("nan")}):
        with pytest.raises((TypeError, ValueError)):
            log.append(Record(header))
        with pytest.raises((TypeError, ValueError)):
            log.rotate(Record(header))
    assert log.append(numbered(0)) == Position(1, 1)
    log.commit()
    assert numbers(log) == [0]
    assert log.segments == [1]


def test_writers_leave_no_names_behind(store: Store) -> None:
    for number in range(5):
        log = started(store)
        log.append(numbered(number))
        log.commit()
        log.trim(log.segment)
    assert len(store.segments()) == 1
    assert sorted(name.partition("-")[0] for name in store.marks()) == ["epoch", "kept"]


@settings(max_examples=60)
@given(CALLS, st.sampled_from(KINDS))
def test_any_sequence_of_calls_keeps_what_was_committed(calls: list[tuple[str, int]], kind: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = new_store(kind, Path(directory))
        make_calls(store, calls)
        store.close()


def test_a_group_has_no_more_than_its_rows_and_a_little(store: Store) -> None:
    rows = pa.record_batch({name: pa.array(range(10_000), pa.int64()) for name in ("id", "power", "cool")})
    log = started(store)
    before = log.kept_bytes
    log.append(Record({"source": "s", "offset": 0}, (rows,)))
    log.commit()
    assert rows.nbytes <= log.kept_bytes - before <= rows.nbytes + 1_500
    assert json.dumps(log.durable) == "[1, 1]"


_WRITER = """
import sys
from topology.durable.open_store import open_store
from topology.durable.record import Record
from topology.durable.take_over import take_over
taken = take_over(open_store(sys.argv[1]))
last = max((r.header["n"] for f in taken.segments[:1] for _, r in taken.records(f)), default=0)
log = taken.start(Record({"n": last}))
while True:
    last += 1
    log.append(Record({"n": last}))
    log.commit()
    print(last, flush=True)
    if last % 50 == 0:
        log.rotate(Record({"n": last}))
"""


def test_a_process_that_is_killed_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    acknowledged = 0
    for round_ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            for _ in range(40 + 37 * round_):
                acknowledged = int(writer.stdout.readline())
            writer.kill()
            acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
        taken = take_over(open_store(tmp_path))
        found = [record.header["n"] for position, record in taken.records(1) if position.record > 0]
        assert found == list(range(1, len(found) + 1))
        assert len(found) in (acknowledged, acknowledged + 1)
