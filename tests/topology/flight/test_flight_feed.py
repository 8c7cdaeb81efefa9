"""Rows are sent ahead of the answers: within bounds, in order, and a refusal says what was taken before it."""

import threading
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from tests.topology.waiting import LONG, SHORT, wait_for
from topology import (
    ConnectionLostError,
    FlightClient,
    Input,
    InputError,
    LocalRuntime,
    OutOfOrderError,
    RunningTopology,
    SchemaError,
    StoppedError,
    TopologyBuilder,
)
from topology.flight.feed import PIPELINE_BATCHES, PIPELINE_BYTES


def rows(*times: int) -> pa.RecordBatch:
    return pa.record_batch({"t": pa.array(times, pa.int64())})


def launch(edge_bytes: int = 1_000_000, event_time: str | None = "t") -> RunningTopology:
    builder = TopologyBuilder("fed")
    builder.input("in", Input(event_time=event_time))
    builder.input("other")
    builder.sink().shuffle_grouping("in").shuffle_grouping("other")
    return LocalRuntime(edge_bytes=edge_bytes).launch(builder.build())


@pytest.fixture
def running() -> Iterator[RunningTopology]:
    with launch() as handle:
        yield handle


@pytest.fixture
def client(running: RunningTopology) -> Iterator[FlightClient]:
    made = FlightClient(running.endpoint("in", control=True))
    yield made
    made.abandon(StoppedError("the test is over"))


def read(running: RunningTopology) -> list[int]:
    running.finish()
    return [time for batch in running.results() for time in batch.column("t").to_pylist()]


def stuck(
    client: FlightClient, batch: pa.RecordBatch, most: int = 1000
) -> tuple[threading.Thread, list[int], list[Exception]]:
    """Send the same batch until the sender waits, as nobody reads results; return its thread, its sends, its errors."""
    sent: list[int] = []
    errors: list[Exception] = []

    def send() -> None:
        try:
            for _ in range(most):
                client.send("in", "a", batch)
                sent.append(1)
        except Exception as error:
            errors.append(error)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    count = -1
    while count != len(sent):  # until nothing more goes in
        count = len(sent)
        sender.join(10 * SHORT)
    assert sender.is_alive(), "the sender never waits"
    return sender, sent, errors


def test_many_small_batches_arrive_in_order(running: RunningTopology, client: FlightClient) -> None:
    for time in range(1000):
        assert client.send("in", "a", rows(time)) == 1
    client.flush()
    assert read(running) == list(range(1000))


def test_finishing_waits_for_the_rows_that_were_sent(running: RunningTopology, client: FlightClient) -> None:
    for time in range(300):
        client.send("in", "a", rows(time))
    client.finish("in")
    assert read(running) == list(range(300))


def test_closing_waits_for_the_rows_that_were_sent(running: RunningTopology) -> None:
    with FlightClient(running.endpoint("in")) as client:
        for time in range(300):
            client.send("in", "a", rows(time))
    assert read(running) == list(range(300))


def test_a_change_of_schema_keeps_the_order(running: RunningTopology, client: FlightClient) -> None:
    for time in range(30):
        batch = rows(time) if time % 3 else rows(time).replace_schema_metadata({"unit": "s"})
        client.send("in", "a", batch)
    client.flush()
    assert read(running) == list(range(30))


def test_dictionaries_may_change_with_every_batch(running: RunningTopology) -> None:
    sent = [pa.record_batch({"k": pa.array([f"{number}", "x"]).dictionary_encode()}) for number in range(20)]
    with FlightClient(running.endpoint("other")) as client:
        for batch in sent:
            client.send("other", "a", batch)
    running.finish()
    with FlightClient(running.endpoint("results")) as reader:
        assert [batch.to_pylist() for batch in reader.results("results")] == [batch.to_pylist() for batch in sent]


def test_a_refusal_is_raised_by_a_later_call_and_says_how_many_rows_were_taken(
    running: RunningTopology, client: FlightClient
) -> None:
    for time in range(10):
        client.send("in", "a", rows(time, time))
    client.flush()
    client.send("in", "a", rows(10, 11, 12))
    with pytest.raises(OutOfOrderError, match="goes backwards") as refused:
        client.send("in", "a", rows(5))
        for time in range(100, 200):  # behind the refused row: they do not enter
            client.send("in", "a", rows(time))
        client.flush()
    assert refused.value.rows_taken == 23
    assert "23 rows" in refused.value.__notes__[0]
    client.send("in", "a", rows(13))
    client.flush()
    with pytest.raises(OutOfOrderError) as again:
        client.send("in", "a", rows(5))
        client.flush()
    assert again.value.rows_taken == 24
    assert read(running) == sorted([*range(10), *range(10), 10, 11, 12, 13])


def test_finishing_raises_a_refusal_and_does_not_finish(running: RunningTopology, client: FlightClient) -> None:
    client.send("in", "a", rows(7))
    client.send("in", "a", rows(3))
    with pytest.raises(OutOfOrderError):
        client.finish("in")
    client.send("in", "a", rows(8))
    client.finish("in")
    assert read(running) == [7, 8]


def test_closing_raises_a_refusal(running: RunningTopology) -> None:
    with pytest.raises(OutOfOrderError), FlightClient(running.endpoint("in")) as client:
        client.send("in", "a", rows(7))
        client.send("in", "a", rows(3))


def test_a_new_schema_is_checked_by_the_call_that_sends_it(running: RunningTopology, client: FlightClient) -> None:
    client.send("in", "a", rows(1))
    with pytest.raises(SchemaError, match="'x' is not expected"):
        client.send("in", "a", pa.record_batch({"t": [2], "x": [1]}))
    client.send("in", "a", rows(2))
    client.flush()
    assert read(running) == [1, 2]


def test_what_is_no_batch_is_refused(client: FlightClient) -> None:
    with pytest.raises(InputError, match="record batches, not dict"):
        client.send("in", "a", [{"t": 1}])


@pytest.mark.parametrize("length", [1, 20_000])
def test_a_topology_that_takes_nothing_stops_the_sender_within_bounds(length: int) -> None:
    edge_bytes = 1000
    with launch(edge_bytes, event_time=None) as running, FlightClient(running.endpoint("in")) as client:
        batch = pa.record_batch({"t": np.zeros(length, np.int64)})
        sender, sent, errors = stuck(client, batch)
        held = len(sent) - len(running.topology.nodes) * (edge_bytes // batch.nbytes + 2)
        assert held <= PIPELINE_BATCHES
        assert held * batch.nbytes <= PIPELINE_BYTES + batch.nbytes
        total = threading.Thread(target=lambda: [None for _ in running.results(timeout=LONG)], daemon=True)
        total.start()
        sender.join(LONG)
        assert len(sent) == 1000
        client.flush(LONG)
        assert not errors
        running.finish()
        total.join(LONG)


def test_flush_gives_up_after_its_timeout_and_can_be_repeated() -> None:
    with launch(1000, event_time=None) as running:
        client = FlightClient(running.endpoint("in"))
        for number in range(10):
            client.send("in", "a", pa.record_batch({"t": np.arange(1000 * number, 1000 * number + 1000)}))
            if number == 0:
                assert next(running.results()) is not None
        with pytest.raises(TimeoutError, match="has not taken all rows yet"):
            client.flush(timeout=SHORT)
        reader = threading.Thread(target=lambda: [None for _ in running.results()], daemon=True)
        reader.start()
        client.flush(LONG)
        running.finish()
        reader.join(LONG)
        client.close()


def test_a_caller_that_waits_can_be_called_off() -> None:
    class CalledOffError(Exception):
        pass

    off = threading.Event()

    def waiting() -> None:
        if off.is_set():
            raise CalledOffError

    with launch(1000, event_time=None) as running:
        client = FlightClient(running.endpoint("in"), waiting)
        sender, _, errors = stuck(client, rows(*range(1000)))
        off.set()
        sender.join(LONG)
        assert isinstance(errors[0], CalledOffError)
        client.abandon(StoppedError("done"))


def test_abandoning_wakes_a_sender_at_once_although_the_topology_takes_nothing() -> None:
    with launch(1000, event_time=None) as running:
        client = FlightClient(running.endpoint("in"))
        sender, _, errors = stuck(client, rows(*range(1000)))
        client.abandon(StoppedError("called off"))
        sender.join(LONG)
        assert str(errors[0]) == "called off"
        wait_for(lambda: not any("in a" in thread.name for thread in threading.enumerate()), "a thread is left")


def test_a_sender_notices_that_the_topology_has_stopped() -> None:
    with launch(1000, event_time=None) as running:
        client = FlightClient(running.endpoint("in"))
        sender, _, errors = stuck(client, rows(*range(1000)))
        running.stop()
        sender.join(LONG)
        assert isinstance(errors[0], StoppedError | ConnectionLostError)
        client.abandon(StoppedError("done"))


def test_streams_of_one_client_do_not_wait_for_each_other() -> None:
    with launch(1000, event_time=None) as running:
        client = FlightClient(running.endpoint("in"))
        stuck(client, rows(*range(1000)))
        with pytest.raises(InputError):  # the token does not grant it, but the answer comes
            client.send("other", "b", rows(1))
        client.abandon(StoppedError("done"))


def test_batches_that_wait_travel_together_and_a_refusal_is_still_exact() -> None:
    """Nobody reads at first, so the topology takes little and the batches wait; one of them goes backwards."""
    count, bad = 120, 100
    with launch(200) as running:
        client = FlightClient(running.endpoint("in"))
        outcome: list[OutOfOrderError] = []

        def send() -> None:
            try:
                for time in range(count):
                    client.send("in", "a", rows(time if time != bad else 0))
                client.flush()
            except OutOfOrderError as error:
                outcome.append(error)
            running.finish()

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        sender.join(10 * SHORT)
        found = [time for batch in running.results() for time in batch.column("t").to_pylist()]
        sender.join(LONG)
        assert found == list(range(bad))
        assert outcome[0].rows_taken == bad
        assert running.metrics().of("in")[0].batches_in < bad, "no batches were joined"
        client.abandon(StoppedError("done"))
