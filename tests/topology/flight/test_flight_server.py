"""A running topology reached from outside over Arrow Flight: rows in, results out, and everything that is refused."""

import errno
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest

from tests.topology.waiting import LONG, wait_for
from topology import (
    AuthenticationError,
    Emit,
    FlightClient,
    Input,
    InputError,
    LocalRuntime,
    MapBatches,
    OutOfOrderError,
    QuotaError,
    Quotas,
    RunningTopology,
    SchemaError,
    SourceEndedError,
    StoppedError,
    TaskError,
    Topology,
    TopologyBuilder,
    TopologyError,
    UnknownInputError,
)
from topology.flight import client as flight_client
from topology.flight.call_options import call_options
from topology.flight.operations import action, descriptor, ticket
from topology.graph.components import Bolt, Origin, PassOn, Task, TaskContext
from topology.graph.errors import ConnectionLostError, InterlaceError
from topology.graph.messages import Batch
from topology.handle.endpoint import Endpoint

ROOT = Path(__file__).parents[3]
SCHEMA = pa.schema([("t", pa.int64()), ("name", pa.string())])


def rows(*times: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(times, pa.int64()), pa.array([f"n{t}" for t in times])], schema=SCHEMA)


def failing(batch: pa.RecordBatch) -> pa.RecordBatch:
    if batch.column("t").to_pylist() == [666]:
        raise ValueError("the number of the beast")
    return batch


def pipeline(bolt: Bolt | None = None) -> Topology:
    builder = TopologyBuilder("served")
    builder.input("in", Input(schema=SCHEMA, event_time="t"))
    builder.input("other")
    builder.bolt("bolt", bolt or MapBatches(failing)).shuffle_grouping("in").shuffle_grouping("other")
    builder.sink().shuffle_grouping("bolt")
    return builder.build()


@pytest.fixture
def running() -> Iterator[RunningTopology]:
    handle = LocalRuntime(edge_bytes=1_000_000).launch(pipeline())
    yield handle
    try:
        handle.stop()
    except TaskError:
        pass


@pytest.fixture
def client(running: RunningTopology) -> Iterator[FlightClient]:
    with FlightClient(running.endpoint("in", control=True)) as made:
        yield made


def times(batches: Iterator[pa.RecordBatch]) -> list[int]:
    return [value for batch in batches for value in batch.column("t").to_pylist()]


def still_works(running: RunningTopology, expected: list[int]) -> None:
    """Check that refused calls have left no trace."""
    running.send("in", rows(1_000_000), source="check")
    running.finish()
    assert times(running.results()) == [*expected, 1_000_000]


# rows and results


def test_rows_sent_and_results_read_over_flight_are_the_same(running: RunningTopology, client: FlightClient) -> None:
    assert client.send("in", "a", rows(1, 2)) == 2
    assert client.send("in", "a", pa.Table.from_batches([rows(3), rows(4, 5)])) == 3
    assert client.send("in", "b", [rows(1), rows(), rows(2)]) == 2
    client.finish("in", "a")
    client.finish("in")
    running.finish("other")
    with FlightClient(running.endpoint("results")) as reader:
        found = list(reader.results("results"))
    assert [batch.schema for batch in found] == [SCHEMA] * len(found)
    assert sorted(times(iter(found))) == [1, 1, 2, 2, 3, 4, 5]


def test_results_that_wait_are_read_together_and_in_order(running: RunningTopology, client: FlightClient) -> None:
    nested = pa.record_batch({"t": pa.array([[1]]), "kind": pa.array(["x"]).dictionary_encode()})
    for time in range(100):
        client.send("in", "a", rows(time))
    client.finish("in")
    with FlightClient(running.endpoint("other")) as second:
        second.send("other", "b", [nested, nested])
    running.finish()
    wait_for(lambda: running.metrics().of("bolt")[0].rows_out == 102)
    with FlightClient(running.endpoint("results")) as reader:
        found = list(reader.results("results"))
    plain = [batch for batch in found if batch.schema == SCHEMA]
    assert times(iter(plain)) == list(range(100))
    assert len(plain) < 50, "results that wait travel one by one"
    assert [batch for batch in found if batch.schema != SCHEMA] == [nested, nested]


def test_results_of_several_schemas_arrive_as_they_are(running: RunningTopology, client: FlightClient) -> None:
    other = pa.record_batch({"t": pa.array([7, 8]), "kind": pa.array(["x", "y"]).dictionary_encode()})
    client.send("in", "a", rows(1))
    with FlightClient(running.endpoint("results")) as reader:
        results = reader.results("results")
        assert next(results) == rows(1)
        with FlightClient(running.endpoint("other")) as second:
            second.send("other", "b", other)
        assert next(results) == other
        client.send("in", "a", rows(2))
        assert next(results) == rows(2)
        running.finish()
        assert list(results) == []


def test_reading_a_sink_that_never_got_rows_ends(running: RunningTopology) -> None:
    running.finish()
    with FlightClient(running.endpoint("results")) as reader:
        assert list(reader.results("results")) == []


def test_any_arrow_client_can_write_and_read(running: RunningTopology) -> None:
    write, read = running.endpoint("in", control=True), running.endpoint("results")
    client = flight.FlightClient(write.location)
    writer, acks = client.do_put(descriptor("send", "in", "plain"), SCHEMA, call_options(write.token))
    writer.write_batch(rows(1, 2))
    writer.done_writing()
    assert acks.read().to_pybytes() == b"2 1"
    writer.close()
    assert list(client.do_action(action("finish", "in"), call_options(write.token)))
    running.finish("other")
    assert client.do_get(ticket("results", "results"), call_options(read.token)).read_all().num_rows == 2
    client.close()


def test_large_batches_are_cut_before_they_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight_client, "SEND_BYTES", 1000)
    with LocalRuntime(quotas=Quotas(message_bytes=2000)).launch(pipeline()) as running:
        with FlightClient(running.endpoint("in")) as client:
            assert client.send("in", "a", rows(*range(1000))) == 1000
        running.finish()
        assert times(running.results()) == list(range(1000))


def test_a_sender_waits_for_a_slow_reader_and_nothing_is_lost(running: RunningTopology, client: FlightClient) -> None:
    count, size = 400, 2000
    sent = 0

    def produce() -> None:
        nonlocal sent
        for number in range(count):
            client.send("in", "a", rows(*range(number * size, (number + 1) * size)))
            sent += 1
        client.flush()

    def finish() -> None:
        producer.join()
        running.finish()

    producer = threading.Thread(target=produce)
    producer.start()
    producer.join(1.0)
    assert producer.is_alive(), "12 MB went into edges of 1 MB each"
    assert sent < count
    ending = threading.Thread(target=finish)
    ending.start()
    with FlightClient(running.endpoint("results")) as reader:
        assert times(reader.results("results")) == list(range(count * size))
    ending.join()


def test_a_reader_that_leaves_makes_room_for_the_next(running: RunningTopology, client: FlightClient) -> None:
    client.send("in", "a", rows(1))
    endpoint = running.endpoint("results")
    with FlightClient(endpoint) as first, FlightClient(endpoint) as second:
        results = first.results("results")
        assert times(iter([next(results)])) == [1]
        with pytest.raises(InputError, match="'results' has a reader already"):
            next(second.results("results"))
        results.close()
        client.send("in", "a", rows(2))
        client.flush()
        running.finish()
        assert times(second.results("results")) == [1, 2]


# staged rows


def test_staged_rows_are_seen_once_after_their_commit(running: RunningTopology, client: FlightClient) -> None:
    assert client.stage("in", "p0", "attempt 1", [rows(1, 2), rows(3)]) == 3
    assert client.stage("in", "p0", "attempt 2", [rows(1, 2), rows(3)]) == 3
    assert list(running.results(timeout=0.1)) == []
    client.commit("in", "p0", "attempt 2", 3)
    client.commit("in", "p0", "attempt 2", 3)
    with pytest.raises(InputError, match="'attempt 1' cannot be committed, because attempt 'attempt 2' has been"):
        client.commit("in", "p0", "attempt 1", 3)
    client.commit("in", "empty", "attempt 1", 0)
    running.finish()
    assert times(running.results()) == [1, 2, 3]


def test_discarded_attempts_never_show(running: RunningTopology, client: FlightClient) -> None:
    client.stage("in", "p0", "job.1", rows(1, 2))
    client.discard("in", "job.")
    client.stage("in", "p1", "job.2", rows(1, 2, 3))
    with pytest.raises(InputError, match="0 have arrived"):
        client.commit("in", "p1", "job.2", 3)
    running.finish()
    assert list(running.results()) == []


def test_a_commit_of_rows_that_did_not_all_arrive_is_refused(running: RunningTopology, client: FlightClient) -> None:
    assert client.stage("in", "p0", "1", []) == 0
    client.stage("in", "p0", "1", rows(1, 2))
    with pytest.raises(InputError, match="with 3 rows, because 2 have arrived"):
        client.commit("in", "p0", "1", 3)
    client.commit("in", "p0", "1", 2)
    running.finish()
    assert times(running.results()) == [1, 2]


# refusals


def test_wrong_rows_are_refused_with_the_same_errors_as_in_process(
    running: RunningTopology, client: FlightClient
) -> None:
    client.send("in", "a", rows(5))
    with pytest.raises(SchemaError, match="stream 'in': wrong schema: column 'name' is missing"):
        client.send("in", "a", rows(6).select(["t"]))
    with pytest.raises(OutOfOrderError, match="'t' goes backwards at row 1 \\(5 is followed by 4\\)"):
        client.send("in", "a", rows(4))
    with pytest.raises(SchemaError, match="column 'x' is not expected"):
        client.stage("in", "b", "1", pa.record_batch({"x": [1]}))
    with pytest.raises(SchemaError):
        client.pin("in", pa.schema([("t", pa.int64())]))
    client.pin("in", SCHEMA)
    client.open("in", "c", "d", behind="b")
    client.finish("in", "a")
    with pytest.raises(SourceEndedError, match="source 'a' has ended"):
        client.send("in", "a", rows(9))
    with pytest.raises(InputError, match="has no source 'nobody'"):
        client.finish("in", "nobody")
    with pytest.raises(InputError, match="takes pyarrow record batches, not int"):
        client.send("in", "b", [1, 2])
    still_works(running, [5])


def test_unknown_names_are_refused(running: RunningTopology, client: FlightClient) -> None:
    with pytest.raises(UnknownInputError, match="has no input stream 'inn'; its input streams: 'in', 'other'"):
        client.send("inn", "a", rows(1))
    with pytest.raises(UnknownInputError):
        client.commit("inn", "a", "1", 0)
    with pytest.raises(InputError, match="must name: stream, source"):
        client.send("in", "", rows(1))
    with pytest.raises(TopologyError, match="has no input or sink 'bolt'"):
        running.endpoint("bolt")
    still_works(running, [])


def test_each_right_has_a_token_of_its_own(running: RunningTopology) -> None:
    write, control = running.endpoint("in"), running.endpoint("in", control=True)
    read, other = running.endpoint("results"), running.endpoint("other", control=True)
    assert len({endpoint.token for endpoint in (write, control, read, other)}) == 4
    with FlightClient(write) as client:
        client.open("in", "a")
        for refused in (
            lambda: client.finish("in"),
            lambda: client.commit("in", "a", "1", 0),
            lambda: client.discard("in", "1"),
            lambda: client.send("other", "a", rows(1)),
            lambda: client.stage("other", "a", "1", rows(1)),
            lambda: list(client.results("results")),
        ):
            with pytest.raises(AuthenticationError, match="the token does not grant the right to"):
                refused()
    for endpoint in (read, other, Endpoint(write.location, "guess"), Endpoint(write.location, "")):
        with FlightClient(endpoint) as client:
            with pytest.raises(AuthenticationError):
                client.send("in", "a", rows(1))
            with pytest.raises(AuthenticationError):
                client.open("in", "b")
    with FlightClient(Endpoint(write.location, "guess")) as client, pytest.raises(AuthenticationError):
        list(client.results("results"))
    still_works(running, [])


def test_garbage_on_the_port_changes_nothing(running: RunningTopology, client: FlightClient) -> None:
    client.send("in", "a", rows(1))
    host, port = running.endpoint("in").location.removeprefix("grpc://").split(":")
    assert host == "127.0.0.1"
    http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for garbage in (b"", b"GET / HTTP/1.1\r\n\r\n", http2 + b"\xff" * 5000, os.urandom(9999)):
        with socket.create_connection((host, int(port)), timeout=LONG) as connection:
            connection.settimeout(LONG)
            try:
                connection.sendall(garbage)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass
            except OSError:  # the server may hang up on it, and does
                pass
    still_works(running, [1])


def test_calls_that_make_no_sense_are_refused(running: RunningTopology) -> None:
    endpoint = running.endpoint("in", control=True)
    options = call_options(endpoint.token)
    client = flight.FlightClient(endpoint.location)

    def put(*path: str) -> None:
        writer, acks = client.do_put(descriptor(*path), SCHEMA, options)
        acks.read()
        writer.close()

    def unnamed() -> None:
        writer, _ = client.do_put(flight.FlightDescriptor.for_command(b"x"), SCHEMA, options)
        writer.close()

    calls = [
        lambda: put("nonsense", "in"),
        lambda: put("send", "in"),
        lambda: put("send", "in", "a", "b", "c"),
        unnamed,
        lambda: list(client.do_action(flight.Action("nonsense", b"[]"), options)),
        lambda: list(client.do_action(flight.Action("open", b"\xff\xfe"), options)),
        lambda: list(client.do_action(flight.Action("open", b'{"a": 1}'), options)),
        lambda: list(client.do_action(flight.Action("open", b"[1, 2]"), options)),
        lambda: list(client.do_action(action("commit", "in", "a", "1", "-3"), options)),
        lambda: list(client.do_action(action("pin", "in", body=b"not a schema"), options)),
        lambda: list(client.do_action(action("finish"), options)),
        lambda: client.do_get(flight.Ticket(b"\x00"), options).read_all(),
        lambda: client.do_get(flight.Ticket(json.dumps(["results"]).encode()), options).read_all(),
    ]
    for call in calls:
        with pytest.raises(flight.FlightError, match="refused") as refused:
            call()
        assert json.loads(refused.value.extra_info)["kind"] in {"InputError", "UnknownInputError"}
    for kind in (client.list_actions, client.list_flights):
        with pytest.raises((NotImplementedError, flight.FlightError, pa.ArrowException)):
            list(kind(options=options))
    client.close()
    still_works(running, [])


def test_damaged_batches_are_refused_before_they_are_looked_at(running: RunningTopology, client: FlightClient) -> None:
    offsets = pa.py_buffer(np.array([0, 5, 2], dtype=np.int32))
    damaged = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"hello"))
    not_utf8 = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 2], dtype=np.int32)), pa.py_buffer(b"\xff\xff"))
    for names in (damaged, not_utf8):
        bad = pa.RecordBatch.from_arrays([pa.array(range(len(names)), pa.int64()), names], schema=SCHEMA)
        with pytest.raises(InterlaceError, match=r"stream 'in': the (batch is damaged|rows cannot be read)|Negative"):
            client.send("in", "a", bad)
    still_works(running, [])


def test_oversized_batches_are_refused() -> None:
    with LocalRuntime(quotas=Quotas(message_bytes=1000)).launch(pipeline()) as running:
        with FlightClient(running.endpoint("in")) as client:
            with pytest.raises(QuotaError, match=r"stream 'in': a batch of .* is too large: send at most 1,000"):
                client.send("in", "a", rows(*range(500)))
            with pytest.raises(QuotaError, match=r"takes messages of at most 328,.*: send fewer rows at once"):
                client.send("in", "a", rows(*range(50_000)))
        still_works(running, [])


# endings


def test_a_failed_task_is_reported_to_senders_and_readers(running: RunningTopology, client: FlightClient) -> None:
    client.send("in", "a", rows(666))
    with FlightClient(running.endpoint("results")) as reader, pytest.raises(TaskError) as failed:
        list(reader.results("results"))
    assert (failed.value.component, failed.value.task) == ("bolt", 0)
    assert "the number of the beast" in str(failed.value)
    assert "in failing" in failed.value.traceback_text
    with pytest.raises(TaskError, match="the number of the beast"):
        client.send("in", "a", rows(667))
        client.flush()


@dataclass(frozen=True)
class Endless(Bolt):
    def build(self, context: TaskContext) -> Task:
        return EndlessTask()


class EndlessTask(PassOn):
    def on_batch(self, batch: Batch, origin: Origin) -> Iterator[Emit]:
        while True:
            yield Emit(Batch("default", batch.rows))


def refuses(host: str, port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex((host, port)) == errno.ECONNREFUSED


def test_stopping_wakes_clients_and_frees_the_port() -> None:
    handle = LocalRuntime(edge_bytes=10_000).launch(pipeline(Endless()))
    endpoint = handle.endpoint("in")
    host, port = endpoint.location.removeprefix("grpc://").split(":")
    outcomes: list[BaseException] = []

    def send() -> None:
        try:
            with FlightClient(endpoint) as client:
                for number in range(100_000):
                    client.send("in", "a", rows(number))
        except BaseException as error:
            outcomes.append(error)

    sender = threading.Thread(target=send)
    sender.start()
    sender.join(0.5)
    handle.stop()
    sender.join(LONG)
    assert not sender.is_alive()
    assert isinstance(outcomes[0], StoppedError)
    wait_for(lambda: refuses(host, int(port)), "the port was never freed")
    with FlightClient(endpoint) as client, pytest.raises(ConnectionLostError, match="cannot be reached"):
        client.send("in", "a", rows(1))
    with pytest.raises(StoppedError):
        handle.endpoint("in")


PROGRAM = """
import sys, pyarrow as pa
from topology import LocalRuntime, TopologyBuilder
builder = TopologyBuilder("program")
builder.input("in")
builder.sink().shuffle_grouping("in")
running = LocalRuntime(edge_bytes=100_000).launch(builder.build())
endpoint = running.endpoint("in")
print(endpoint.location, endpoint.token, flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("behaviour", ["idle", "busy", "blocked"])
def test_a_program_ends_although_clients_are_connected(behaviour: str) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdin is not None
    assert program.stdout is not None
    location, token = program.stdout.readline().split()
    client = flight.FlightClient(location)
    writer, _ = client.do_put(descriptor("send", "in", "a"), SCHEMA, call_options(token))
    batch = rows(*range(10_000)) if behaviour == "blocked" else rows()

    def write() -> None:
        try:
            while True:
                writer.write_batch(batch)
        except (flight.FlightError, pa.ArrowException, OSError):
            pass

    sender = threading.Thread(target=write)
    if behaviour != "idle":
        sender.start()
        sender.join(0.5)
    program.stdin.write("\n")
    program.stdin.flush()
    assert program.wait(LONG) == 0
    program.stdin.close()
    program.stdout.close()
    if behaviour != "idle":
        sender.join(LONG)
    with pytest.raises(flight.FlightError):
        writer.close()
    client.close()
