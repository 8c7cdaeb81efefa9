"""ScaleGate against its definition: all rows in order of (time, source, offset), to every reader alike."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.intake.scale_gate import ScaleGate
from operators.intake.waiting_run import SourceName
from operators.intake.waiting_source import memory_share
from topology.graph.event_time import Times


def rows_of(source: SourceName, times: np.ndarray, first: int = 0) -> pa.RecordBatch:
    offsets = range(first, first + len(times))
    return pa.record_batch({"id": [f"{source.stream}/{source.name}/{offset}" for offset in offsets], "ts": times})


def ids(gate: ScaleGate, reader: int, most: int | None = None) -> list[tuple[int, str]]:
    """What the reader gets, (number, id), of at most so many steps."""
    read: list[tuple[int, str]] = []
    while (most is None or most > 0) and (step := gate.next_ready(reader)) is not None:
        numbers: list[int] = []
        for rows in step.streams.values():
            assert np.all(np.diff(rows.seq) > 0)
            numbers += rows.seq.tolist()
            read += zip(rows.seq.tolist(), rows.rows.column("id").to_pylist(), strict=True)
        assert sorted(numbers) == list(range(step.first, step.end))
        most = None if most is None else most - 1
    return read


@pytest.mark.parametrize("memory", [0, 150, 1 << 20])
@given(data=st.data())
def test_every_reader_gets_all_rows_in_the_order_of_the_definition(memory: int, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("operators.intake.waiting_source.MEMORY", memory)
        check_random_course(data)


def check_random_course(data: st.DataObject) -> None:
    names = st.builds(SourceName, st.sampled_from(["a", "b", "é", "aa"]), st.sampled_from("RS"))
    sources = data.draw(st.lists(names, min_size=1, max_size=6, unique=True))
    floats = data.draw(st.booleans())
    pool = st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 2.5, np.inf]) if floats else st.integers(-3, 3)
    times: dict[SourceName, Times] = {}
    for source in sources:
        drawn = np.array(sorted(data.draw(st.lists(pool, max_size=12))), np.float64)
        times[source] = drawn if floats else drawn.astype(np.int64)
    readers = data.draw(st.integers(1, 3))
    gate = ScaleGate(readers, data.draw(st.integers(1, 20)))
    for source in sources:
        gate.open(source)
    sent = dict.fromkeys(sources, 0)
    read: list[list[tuple[int, str]]] = [[] for _ in range(readers)]
    for source in data.draw(st.permutations([source for source in sources for _ in range(3)])):
        count = data.draw(st.integers(0, len(times[source]) - sent[source]))
        part = times[source][sent[source] : sent[source] + count]
        assert gate.add(source, rows_of(source, part, sent[source]), part) is None
        sent[source] += count
        reader = data.draw(st.integers(0, readers - 1))
        read[reader] += ids(gate, reader, data.draw(st.integers(0, 3)))
        gate.check_invariants()
    for source in sources:
        rest = times[source][sent[source] :]
        gate.add(source, rows_of(source, rest, sent[source]), rest)
    gate.end(sources)
    everything = [(time, source, offset) for source in sources for offset, time in enumerate(times[source].tolist())]
    expected = [f"{source.stream}/{source.name}/{offset}" for _, source, offset in sorted(everything)]
    for reader in range(readers):
        read[reader] += ids(gate, reader)
        assert sorted(read[reader]) == list(enumerate(expected))
        gate.check_invariants()
    assert gate.kept == gate.waiting == 0


def test_it_does_as_the_example_says() -> None:
    gate = ScaleGate()
    a, b, c = (SourceName(name) for name in "abc")
    gate.open(c)
    for source, times in ((a, [1, 4, 6]), (b, [2, 4, 5])):
        gate.add(source, rows_of(source, np.array(times)), np.array(times))
    assert ids(gate, 0) == []
    gate.add(c, rows_of(c, np.array([3])), np.array([3]))
    assert [name for _, name in ids(gate, 0)] == ["/a/0", "/b/0", "/c/0"]
    gate.promise(c, 5)
    assert [name for _, name in ids(gate, 0)] == ["/a/1", "/b/1", "/b/2"]


def test_rows_are_kept_until_the_slowest_reader_has_them() -> None:
    gate = ScaleGate(readers=2, step_rows=10)
    source = SourceName("a")
    gate.add(source, rows_of(source, np.arange(100)), np.arange(100))
    assert len(ids(gate, 0)) == 100
    assert gate.kept == 100
    assert len(ids(gate, 1, most=3)) == 30
    assert gate.kept == 70
    assert len(ids(gate, 1)) == 70
    assert gate.kept == 0
    gate.check_invariants()


def test_late_rows_are_told_and_left_out() -> None:
    gate = ScaleGate()
    a, b, c = (SourceName(name) for name in "abc")
    gate.add(b, rows_of(b, np.array([1, 5])), np.array([1, 5]))
    assert len(ids(gate, 0)) == 2
    late = gate.add(a, rows_of(a, np.array([4, 5, 6])), np.array([4, 5, 6]))
    assert late is not None
    assert late.rows.tolist() == [0, 1]  # a goes before b at equal times
    late = gate.add(c, rows_of(c, np.array([4, 5, 6])), np.array([4, 5, 6]))
    assert late is not None
    assert late.rows.tolist() == [0]
    gate.end([a, b, c])
    assert [name for _, name in ids(gate, 0)] == ["/c/1", "/a/2", "/c/2"]


def test_threads_may_add_and_read_at_the_same_time() -> None:
    sources = [SourceName(f"source-{number}") for number in range(4)]
    gate = ScaleGate(readers=3, step_rows=500)
    for source in sources:
        gate.open(source)
    done = threading.Event()
    read: list[list[Any]] = [[], [], []]

    def send(number: int) -> None:
        times = np.sort(np.random.default_rng(number).integers(0, 5000, 4000))
        for at in range(0, 4000, 50):
            gate.add(sources[number], pa.record_batch({"ts": times[at : at + 50]}), times[at : at + 50])
        gate.end([sources[number]])

    def receive(reader: int) -> None:
        while len(read[reader]) < 16_000 and not done.wait(0):
            step = gate.next_ready(reader)
            if step is not None:
                read[reader] += step.streams[""].rows.column("ts").to_pylist()

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    threads += [threading.Thread(target=receive, args=(reader,)) for reader in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    done.set()
    gate.check_invariants()
    assert all(len(each) == 16_000 and each == sorted(each) for each in read)


def test_counts_may_be_asked_for_while_sources_come() -> None:
    gate = ScaleGate()

    def open_many() -> None:
        for number in range(5_000):
            gate.open(SourceName(str(number), "R"))

    opening = threading.Thread(target=open_many)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        opening.start()
        while opening.is_alive():
            assert gate.waiting == gate.waiting_bytes == gate.spilled_bytes == gate.kept == 0
    finally:
        sys.setswitchinterval(interval)
        opening.join()


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="ScaleGate: readers"):
        ScaleGate(0)
    with pytest.raises(ValueError, match="ScaleGate: step_rows"):
        ScaleGate(1, 0)


def test_many_sources_share_what_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory_share(1) == memory_share(4) == 64 * 2**20
    assert 60 * memory_share(60) <= 256 * 2**20
    assert memory_share(10_000) == 2**20
    monkeypatch.setattr("operators.intake.waiting_source.MEMORY_OF_ALL", 1_000_000)
    monkeypatch.setattr("operators.intake.waiting_source.LEAST_MEMORY", 10_000)
    rows = pa.record_batch({"x": pa.array(range(1_000), pa.int64())})
    spilled = []
    for sources in (1, 20):
        gate = ScaleGate()
        gate.open(SourceName("quiet", "R"))  # all others wait for it
        for number in range(sources):
            gate.open(SourceName(f"s{number}", "R"))
        for part in range(10):
            times = np.arange(part * 1_000, (part + 1) * 1_000, dtype=np.int64)
            for number in range(sources):
                gate.add(SourceName(f"s{number}", "R"), rows, times, 0.0)
        spilled.append(gate.spilled_bytes)
        gate.close()
    assert spilled[0] == 0 < spilled[1]


def test_a_source_that_announces_a_bound_is_put_in_order_by_it() -> None:
    """Its neighbour is in order as ever; a bound of the stream that is greater counts for both."""
    own, other = SourceName("own", "R"), SourceName("z", "S")
    for stream_bound, late, order in (
        (None, [3], ["R/own/1", "S/z/0", "R/own/2", "R/own/0"]),
        (9, None, ["R/own/3", "R/own/1", "S/z/0", "R/own/2", "R/own/0"]),
    ):
        gate = ScaleGate()
        gate.open(own, 5)
        gate.open(other)
        times = np.array([10, 5, 7, 4])
        found = gate.add(own, rows_of(own, times), times, bound=stream_bound)
        assert (None if found is None else found.rows.tolist()) == late
        assert ids(gate, 0) == []
        gate.add(other, rows_of(other, np.array([6])), np.array([6]), bound=stream_bound)
        gate.end([own, other])
        assert [name for _, name in sorted(ids(gate, 0))] == order
        gate.check_invariants()
