"""Messages over a real Flight stream: what goes in comes out, once, in order."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topology.waiting import LONG, repeatedly
from topology import AuthenticationError, Barrier, Batch, End, Idle, InputError, Origin, Punctuation, Watermark
from topology.flight.auth import Authority, Grant, Right
from topology.flight.channel import ChannelReceiver, FlightChannel
from topology.flight.port import FlightPort
from topology.flight.wire import Turnstile, aligned, embedded, extracted
from topology.graph.errors import ConnectionLostError, StaleStreamError, StoppedError
from topology.graph.messages import Message
from topology.tasks.inbox import Inbox

LEFT = pa.record_batch({"id": pa.array([1, 2, None]), "name": ["a", "ü", None]})
RIGHT = pa.record_batch({"key": [0.5, float("nan")], "kind": pa.array(["x", "y"]).dictionary_encode()})
NESTED = pa.record_batch({"list": pa.array([[1, 2], None, []]), "pair": pa.array([{"a": 1, "b": "x"}, None, {"a": 2}])})


class Receiver:
    """A consumer with one input, behind a port."""

    def __init__(self, capacity: int = 1 << 20) -> None:
        self.authority = Authority()
        self.token = self.authority.issue(Grant(Right.CHANNEL))
        self.port = FlightPort(self.authority)
        self.inbox = Inbox(2, capacity)
        ChannelReceiver((Origin("p", 0, 0), Origin("p", 1, 1)), self.inbox, self.port)

    def connect(self, index: int = 0, incarnation: int = 0) -> FlightChannel:
        return FlightChannel(self.port.location, self.token, index, incarnation, "the consumer")

    def take(self, count: int) -> list[Message]:
        found = [self.inbox.take(timeout=LONG) for _ in range(count)]
        assert None not in found
        return [item[1] for item in found if item is not None]


@contextmanager
def receiver(capacity: int = 1 << 20) -> Iterator[Receiver]:
    consumer = Receiver(capacity)
    try:
        yield consumer
    finally:
        consumer.inbox.close()
        consumer.port.close()


@pytest.fixture(scope="module")
def consumer() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def closed(channel: FlightChannel) -> None:
    channel.end()
    channel.close()


MESSAGES: list[Message] = [
    Watermark(None, "left", "s1"),
    Punctuation(3, 1.25),
    Batch("left", LEFT, 7, "s1", (1, 9), 2.5),
    Watermark(5, "left", "s1"),
    Watermark(-5.5, "", ""),
    Idle("left", "s1"),
    Idle("default", ""),
    Batch("right", RIGHT, 0, "", (0.5, 2.5)),
    Batch("left", LEFT.slice(1, 1), 2**62, "", (-(2**63), 2**63 - 1)),
    Batch("left", LEFT.slice(0, 0)),
    Batch("right", NESTED, 1),
    Barrier(12),
    End("left", "ein größerer Name \0 mit allem"),
    End(),
]


def test_every_kind_of_message_arrives_as_it_was_sent(consumer: Receiver) -> None:
    channel = consumer.connect(incarnation=1)
    for message in MESSAGES:
        channel(message)
    arrived = consumer.take(len(MESSAGES))
    assert [type(message) for message in arrived] == [type(message) for message in MESSAGES]
    for sent, received in zip(MESSAGES, arrived, strict=True):
        if isinstance(sent, Batch) and isinstance(received, Batch):
            received.rows.validate(full=True)
            assert received.rows.schema.equals(sent.rows.schema, check_metadata=True)
            assert str(received.rows.to_pylist()) == str(sent.rows.to_pylist())  # NaN is not equal to itself
            assert (received.stream, received.first, received.source) == (sent.stream, sent.first, sent.source)
            assert (received.times, received.born) == (sent.times, sent.born)
        else:
            assert received == sent
    closed(channel)


incarnations = iter(range(100, 1_000_000))
batches = st.builds(
    lambda stream, values, first: Batch(stream, pa.record_batch({stream: pa.array(values, pa.int64())}), first),
    st.sampled_from(["a", "b", "c"]),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4),
    st.integers(0, 2**60),
)
controls = st.one_of(
    st.builds(Idle, st.text(), st.text()),
    st.builds(Watermark, st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)), st.text()),
    st.builds(Punctuation, st.integers(0, 2**62), st.floats(allow_nan=False)),
    st.builds(Barrier, st.integers(0, 2**62)),
    st.builds(End, st.text(), st.text()),
)


@settings(max_examples=50)
@given(messages=st.lists(st.one_of(batches, controls), max_size=12))
def test_any_mixture_of_streams_and_controls_keeps_its_order(consumer: Receiver, messages: list[Message]) -> None:
    channel = consumer.connect(index=1, incarnation=next(incarnations))
    for message in messages:
        channel(message)
    assert consumer.take(len(messages)) == messages
    closed(channel)


@pytest.mark.parametrize("rows", [1, 7, 1000, 30_000, 300_000])
def test_received_columns_lie_where_kernels_want_them(consumer: Receiver, rows: int) -> None:
    channel = consumer.connect(incarnation=next(incarnations))
    batch = pa.record_batch({"a": np.arange(rows), "b": np.arange(rows) / 3, "c": [str(row) for row in range(rows)]})
    for first in range(5):
        channel(Batch("x" * first, batch, first))
        received = consumer.take(1)[0]
        assert isinstance(received, Batch)
        assert received.rows.equals(batch)
        assert received.rows.column("a").to_numpy().flags.aligned
        assert received.rows.column("b").to_numpy().flags.aligned
    closed(channel)


def test_misaligned_dictionaries_and_nested_rows_are_copied_whole() -> None:
    for rows in (LEFT, RIGHT, NESTED):
        content = embedded(b"xyz", rows)
        shifted = pa.ipc.open_stream(content.slice(3)).read_next_batch()
        assert str(aligned(shifted).to_pylist()) == str(rows.to_pylist())
        assert aligned(shifted).column(0).buffers()[-1].address % 8 == 0
        assert str(extracted(content.to_pybytes()[3:]).to_pylist()) == str(rows.to_pylist())


def test_a_replaced_sender_is_refused_and_a_repeated_message_passed_over() -> None:
    turnstile = Turnstile("p[0]")
    arrived: list[str] = []
    turnstile.open(0)
    turnstile.deliver(0, 0, lambda: arrived.append("old 0"))
    turnstile.deliver(0, 0, lambda: arrived.append("old 0 again"))
    turnstile.open(1)
    with pytest.raises(StaleStreamError, match="incarnation 0 has been replaced by 1"):
        turnstile.deliver(0, 1, lambda: arrived.append("zombie"))
    with pytest.raises(StaleStreamError, match="has been replaced"):
        turnstile.open(0)
    turnstile.deliver(1, 0, lambda: arrived.append("new 0"))
    with pytest.raises(StaleStreamError, match="message 2 came instead of message 1"):
        turnstile.deliver(1, 2, lambda: arrived.append("gap"))
    assert arrived == ["old 0", "new 0"]


def test_a_message_that_could_not_be_put_is_still_expected() -> None:
    turnstile = Turnstile("p[0]")
    turnstile.open(0)

    def stopped() -> None:
        raise StoppedError("stopped")

    with pytest.raises(StoppedError):
        turnstile.deliver(0, 0, stopped)
    arrived: list[int] = []
    turnstile.deliver(0, 0, lambda: arrived.append(0))
    assert arrived == [0]


def test_a_replaced_sender_on_the_wire_gets_an_error() -> None:
    with receiver() as consumer:
        old = consumer.connect(incarnation=0)
        old(Barrier(1))
        consumer.take(1)
        new = consumer.connect(incarnation=1)
        new(Barrier(2))
        assert consumer.take(1) == [Barrier(2)]
        with pytest.raises(StaleStreamError, match="incarnation 0 has been replaced by 1"):
            for _ in repeatedly():
                old(Barrier(3))
        assert consumer.inbox.poll() is None
        closed(new)
        old.close()


def test_a_slow_consumer_makes_the_producer_wait_within_bounds() -> None:
    rows = pa.record_batch({"n": np.arange(10_000)})
    count = 1000
    with receiver(capacity=400_000) as consumer:
        channel = consumer.connect()
        sent = 0

        def produce() -> None:
            nonlocal sent
            for first in range(count):
                channel(Batch("default", rows, first))
                sent += 1

        producer = threading.Thread(target=produce)
        producer.start()
        producer.join(1.0)
        before_reading = sent
        assert producer.is_alive(), "80 MB went into an edge of 400 kB"
        assert before_reading * rows.nbytes < 40_000_000
        assert consumer.inbox.nbytes <= 400_000
        firsts = [message.first for message in consumer.take(count) if isinstance(message, Batch)]
        producer.join()
        assert firsts == list(range(count))
        closed(channel)


def test_a_stopped_consumer_wakes_its_producer() -> None:
    rows = pa.record_batch({"n": np.arange(10_000)})
    with receiver(capacity=100_000) as consumer:
        channel = consumer.connect()
        threading.Timer(0.3, consumer.inbox.close).start()
        with pytest.raises(StoppedError, match="stopped"):
            while True:
                channel(Batch("default", rows))
        channel.close()


def test_channels_need_their_own_token() -> None:
    with receiver() as consumer:
        client_token = consumer.authority.issue(Grant(Right.WRITE, "in"), Grant(Right.CONTROL, "in"))
        for token in ("", "guess", client_token):
            with pytest.raises(AuthenticationError):
                channel = FlightChannel(consumer.port.location, token, 0, 0, "the consumer")
                for _ in repeatedly():
                    channel(Barrier(1))
        assert consumer.inbox.poll() is None


def test_a_channel_that_does_not_exist_is_refused() -> None:
    with receiver() as consumer, pytest.raises(InputError, match="no such channel"):
        channel = consumer.connect(index=2)
        for _ in repeatedly():
            channel(Barrier(1))


def test_a_peer_that_is_gone_is_reported() -> None:
    with receiver() as consumer:
        location, token = consumer.port.location, consumer.token
    with pytest.raises(ConnectionLostError, match="the consumer cannot be reached"):
        channel = FlightChannel(location, token, 0, 0, "the consumer")
        channel(Barrier(1))
