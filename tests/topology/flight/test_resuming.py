"""Clients of a durable topology across its lives, here in one process: a launch with the same state is another life."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext as explained
from pathlib import Path

import pyarrow as pa
import pytest

from operators import CountWindow, StreamJoin
from tests.topology.waiting import SHORT, wait_for
from topology import (
    FlightClient,
    InputError,
    InterlaceError,
    LocalRuntime,
    OffsetGapError,
    RunningTopology,
    SchemaError,
    StoppedError,
)
from topology.entry.ingest import Ingest
from topology.flight import client_port, resuming
from topology.flight.resuming import Lives, ResumingClient
from topology.flight.sink_readers import SinkReaders
from topology.handle.endpoint import Endpoint

JOIN = StreamJoin("R", "S", "R.x = S.x", CountWindow(10), select=["R.x", "S.x"], ordering="strict")


class Durable:
    """A topology that is launched again and again, and its clients."""

    def __init__(self, state: Path) -> None:
        self._runtime = LocalRuntime(state=state)
        self.error: Exception | None = None
        self.lives = Lives("durable", 0, self._check)
        self.running: RunningTopology = self._runtime.launch(JOIN.topology())
        self.readers = SinkReaders(self.endpoint, explained, self.lives)
        self.clients = {stream: ResumingClient(stream, self._connector(stream), self.lives) for stream in "RS"}

    def endpoint(self, stream: str) -> Endpoint:
        return self.running.endpoint(stream, control=stream in "RS")

    def end_life(self) -> None:
        self.lives.ended()
        self.running.stop()

    def begin_life(self) -> None:
        self.running = self._runtime.launch(JOIN.topology())
        self.lives.began(self.lives.number + 1)

    def close(self) -> None:
        self.error = StoppedError("over")
        for client in self.clients.values():
            client.abandon(self.error)
        self.readers.abandon(self.error)
        self.running.stop()

    def send(self, stream: str, *values: int, offset: int | None = None) -> None:
        self.clients[stream].send(stream, f"{stream}-0", [rows(*values)], offset)

    def _connector(self, stream: str) -> Callable[[], FlightClient]:
        return lambda: FlightClient(self.endpoint(stream), self._check)

    def _check(self) -> None:
        if self.error is not None:
            raise self.error


def rows(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"x": pa.array(values, pa.int64())})


@pytest.fixture
def durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Durable]:
    monkeypatch.setattr(resuming, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(client_port, "CLOSE_SECONDS", 0.1)
    made = Durable(tmp_path)
    yield made
    made.close()


def test_rows_are_sent_again_until_they_are_taken_and_never_twice(durable: Durable) -> None:
    for stream in "RS":
        durable.clients[stream].open(stream, f"{stream}-0")
        durable.send(stream, 1, 2)
        durable.send(stream, 3)  # it may be taken or not when the life ends
    durable.end_life()
    with ThreadPoolExecutor(2) as threads:
        sending = [threads.submit(durable.send, stream, 4, 5) for stream in "RS"]
        assert not threading.Event().wait(SHORT)
        assert not any(each.done() for each in sending)
        durable.begin_life()
        for each in sending:
            each.result()
    for stream in "RS":
        assert durable.clients[stream].next_offset(stream, f"{stream}-0") == 5
        durable.clients[stream].finish(stream)
        durable.clients[stream].finish(stream)
    reading = durable.readers.read("results", None, False)
    found = []
    while (item := reading.next()) is not None:
        found += item[1].column(0).to_pylist()
    assert sorted(found) == [1, 2, 3, 4, 5]


def test_rows_on_their_way_when_a_life_ends_are_held_and_sent_first(
    durable: Durable, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable.send("R", 1, 2)

    def dying(*arguments: object) -> int:
        raise StoppedError("the topology has been stopped")

    with monkeypatch.context() as patched:
        patched.setattr(Ingest, "send", dying)
        durable.send("R", 3, 4, 5)  # they are on their way when this returns; another call might see that they failed
        durable.end_life()
    durable.begin_life()
    durable.send("R", 6)
    assert durable.clients["R"].next_offset("R", "R-0") == 6


def test_a_reader_goes_on_behind_what_it_gave_out(durable: Durable) -> None:
    reading = durable.readers.read("results", None, False)
    numbers: list[int] = []
    for life in range(3):
        for stream in "RS":
            durable.send(stream, *range(5 * life, 5 * life + 5))
        item = reading.next()
        assert item is not None
        numbers += range(item[0], item[0] + item[1].num_rows)
        durable.end_life()
        while (item := reading.next(SHORT)) is not None:  # it does not wait longer than asked
            numbers += range(item[0], item[0] + item[1].num_rows)
        assert not reading.finished
        durable.begin_life()
    for stream in "RS":
        durable.clients[stream].finish(stream)
    while (item := reading.next()) is not None:
        numbers += range(item[0], item[0] + item[1].num_rows)
    assert numbers == list(range(15))
    assert reading.finished


def test_an_acknowledgement_is_repeated_until_it_is_durable(durable: Durable) -> None:
    for stream in "RS":
        durable.send(stream, 1, 2, 3, 4)
    reading = durable.readers.read("results", None, False)
    assert reading.next() is not None
    reading.close()
    durable.end_life()
    with ThreadPoolExecutor(1) as threads:
        acknowledging = threads.submit(durable.readers.acknowledge, "results", 0)
        assert not threading.Event().wait(SHORT)
        assert not acknowledging.done()
        durable.begin_life()
        acknowledging.result()
    durable.end_life()
    durable.begin_life()
    item = durable.readers.read("results", None, False).next()
    assert item is not None
    assert item[0] == 1


def test_refusals_are_not_repeated(durable: Durable) -> None:
    client = durable.clients["R"]
    durable.send("R", 1)
    with pytest.raises(OffsetGapError):
        durable.send("R", 9, offset=5)
    with pytest.raises(SchemaError):
        client.send("R", "R-0", [pa.record_batch({"y": [1]})])
    with pytest.raises(InputError):
        client.open("nothing", "R-0")
    durable.send("R", 2)
    assert client.next_offset("R", "R-0") == 2


def test_flush_keeps_its_timeout_while_nobody_runs(durable: Durable) -> None:
    durable.send("R", 1)
    durable.end_life()
    with pytest.raises(TimeoutError):
        durable.clients["R"].flush(SHORT)
    durable.begin_life()
    durable.clients["R"].flush()
    assert durable.clients["R"].next_offset("R", "R-0") == 1


def test_whoever_waits_learns_that_no_life_follows(durable: Durable) -> None:
    durable.end_life()
    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(durable.send, "R", 1)
        assert not threading.Event().wait(SHORT)
        durable.error = InputError("it has failed for good")
        with pytest.raises(InputError, match="for good"):
            sending.result()


def test_an_unknown_error_is_raised_if_the_life_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resuming, "RETRY_SECONDS", 0.01)
    lives = Lives("it", 0, lambda: None)
    calls = iter([StoppedError("connection reset"), InterlaceError("who knows")])

    def call() -> None:
        raise next(calls)

    with pytest.raises(InterlaceError, match="who knows"):
        lives.repeat(call, "a call")


def test_a_wait_is_told_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    lives = Lives("trips", 0, lambda: None)
    lives.ended()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(lives.wait, StoppedError("gone"), 0, "a call to 'R'")
        wait_for(lambda: "a call to 'R' waits until topology 'trips' runs again (gone)" in caplog.text)
        lives.began(1)
        assert waiting.result()
