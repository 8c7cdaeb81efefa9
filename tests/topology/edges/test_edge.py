"""Edges over real sockets: what goes in comes out, once, in order, and no faster than it is taken."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import pyarrow as pa
import pytest

from tests.topology.waiting import LONG, SHORT, done_within, repeatedly, wait_for
from topology import (
    AuthenticationError,
    Barrier,
    Batch,
    Certificate,
    Credentials,
    End,
    InputError,
    Origin,
    Punctuation,
    Watermark,
)
from topology.edges.edge import SocketEdge
from topology.edges.edge_receiver import EdgeReceiver
from topology.edges.sockets import Peer
from topology.edges.turnstile import Turnstile
from topology.edges.under_way import STEPS_UNDER_WAY
from topology.graph.errors import ConnectionLostError, StaleStreamError, StoppedError
from topology.graph.messages import Message
from topology.security.tokens import Authority, Grant, Right
from topology.tasks.inbox import Inbox

ROWS = pa.record_batch({"n": np.arange(10_000)})
CODED = pa.record_batch({"kind": pa.array(["x", "y"]).dictionary_encode()})


class Consumers:
    """Two tasks of one component behind one port; each has two inputs."""

    def __init__(self, certificate: Certificate | None) -> None:
        self.authority = Authority()
        self.token = self.authority.issue(Grant(Right.CHANNEL))
        self.inboxes = [Inbox(2), Inbox(2)]
        self.failures: list[Exception] = []
        origins = (Origin("p", 0, 0), Origin("p", 1, 1))
        tasks = {("c", task): (origins, inbox) for task, inbox in enumerate(self.inboxes)}
        self.receiver = EdgeReceiver(self.authority, tasks, certificate=certificate)
        self.certificate = certificate

    @property
    def inbox(self) -> Inbox:
        return self.inboxes[0]

    def connect(
        self, index: int = 0, incarnation: int = 0, capacity: int = 1 << 20, task: int = 0, token: str | None = None
    ) -> SocketEdge:
        root = None if self.certificate is None else self.certificate.root
        peer = Peer(self.receiver.location, self.token if token is None else token, root)
        names = (("p", index), ("c", task), index, incarnation, capacity)
        return SocketEdge(peer, *names, self.failures.append, self.certificate)

    def take(self, count: int, task: int = 0) -> list[Message]:
        found = [self.inboxes[task].take(timeout=LONG) for _ in range(count)]
        assert None not in found
        return [item[1] for item in found if item is not None]

    def failure(self) -> Exception:
        """The first failure of an edge; waits for it."""
        wait_for(lambda: bool(self.failures), "the edge did not fail")
        return self.failures[0]


Listen = Callable[[], AbstractContextManager[Consumers]]


@contextmanager
def listening(certificate: Certificate | None) -> Iterator[Consumers]:
    made = Consumers(certificate)
    try:
        yield made
    finally:
        for inbox in made.inboxes:
            inbox.close()
        made.receiver.close()


@pytest.fixture(scope="module")
def credentials() -> Credentials:
    return Credentials()


@pytest.fixture(params=["plain", "tls"])
def consumers(request: pytest.FixtureRequest, credentials: Credentials) -> Listen:
    """The consumers' end of edges, without and with encryption."""
    certificate = credentials.issue("127.0.0.1") if request.param == "tls" else None
    return lambda: listening(certificate)


def step(number: int) -> list[Message]:
    """One step: a batch per stream, then the punctuation."""
    return [Batch("left", ROWS, number), Batch("right", CODED, number), Punctuation(number)]


def test_the_end_of_an_input_within_a_step_does_not_end_the_edge(consumers: Listen) -> None:
    with consumers() as end:
        edge = end.connect()
        sent: list[Message] = [Punctuation(0), End("lines"), Punctuation(1), End()]
        for number, message in enumerate(sent):
            edge.push(message)
            assert end.take(1) == [sent[number]]
        assert edge.join(LONG)
        assert not end.failures


def test_all_messages_arrive_once_and_in_order_and_the_stream_ends_after_the_last(consumers: Listen) -> None:
    with consumers() as end:
        edge = end.connect()
        sent: list[Message] = [
            Watermark(1, "left"),
            *step(0),
            *step(1),
            Batch("other", ROWS.slice(5, 3)),
            End("left", "s"),
        ]
        for message in sent:
            edge.push(message)
        edge.push(End())
        assert end.take(len(sent) + 1) == [*sent, End()]
        assert edge.join(LONG)
        assert not end.failures


def test_edges_to_several_tasks_of_a_process_share_a_port(consumers: Listen) -> None:
    with consumers() as end:
        edges = {(task, index): end.connect(index, task=task) for task in range(2) for index in range(2)}
        for (task, index), edge in edges.items():
            edge.push(Barrier(10 * task + index))
        for task in range(2):
            found = sorted(end.inboxes[task].take(timeout=LONG) or () for _ in range(2))
            assert found == [(index, Barrier(10 * task + index)) for index in range(2)]
        for edge in edges.values():
            edge.close()


@contextmanager
def frames_counted(end: Consumers, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The number of messages in each frame that arrives."""
    arrivals: list[int] = []
    push_all = end.inbox.push_all

    def counted(index: int, messages: Sequence[Message]) -> None:
        arrivals.append(len(messages))
        push_all(index, messages)

    monkeypatch.setattr(end.inbox, "push_all", counted)
    yield arrivals


@pytest.mark.parametrize("small", [True, False])
def test_a_step_travels_as_one_message(consumers: Listen, monkeypatch: pytest.MonkeyPatch, small: bool) -> None:
    if not small:
        monkeypatch.setattr("topology.edges.edge.SMALL_FRAME_BYTES", 0)
    with consumers() as end, frames_counted(end, monkeypatch) as arrivals:
        edge = end.connect()
        for number in range(5):
            for message in step(number):
                edge.push(message)
            assert end.take(3) == step(number)
        assert arrivals == [3] * 5
        edge.close()


def test_batches_leave_without_a_punctuation_when_the_task_pauses_or_there_is_no_room(
    consumers: Listen, monkeypatch: pytest.MonkeyPatch
) -> None:
    with consumers() as end, frames_counted(end, monkeypatch) as arrivals:
        edge = end.connect(capacity=200_000)
        edge.push(Barrier(0))
        end.take(1)
        edge.push(Batch("default", ROWS, 0))
        edge.push(Watermark(1))
        assert not done_within(lambda: end.inbox.nbytes > 0, SHORT)
        edge.flush()
        end.take(2)
        assert arrivals == [1, 2]
        for first in range(3):
            edge.push(Batch("default", ROWS, first))
        end.take(3)
        edge.close()


def test_a_consumer_that_takes_nothing_stops_its_producer_after_a_few_steps(consumers: Listen) -> None:
    with consumers() as end:
        edge = end.connect()
        for number in range(STEPS_UNDER_WAY):
            assert edge.has_room
            edge.push(Punctuation(number))
        assert not done_within(lambda: edge.has_room, SHORT)
        room = threading.Event()
        edge.on_room = room.set
        end.take(2)
        assert room.wait(LONG)
        wait_for(lambda: edge.has_room)
        edge.close()


def test_a_consumer_that_takes_nothing_stops_its_producer_after_some_bytes(consumers: Listen) -> None:
    with consumers() as end:
        edge = end.connect(capacity=400_000)
        sent = 0

        def produce() -> None:
            nonlocal sent
            for first in range(100):
                edge.put(Batch("default", ROWS, first))
                sent += 1

        producer = threading.Thread(target=produce)
        producer.start()
        wait_for(lambda: sent == 5)
        producer.join(SHORT)
        assert producer.is_alive()
        assert sent == 5, "400 kB hold five batches of 80 kB"
        firsts = [message.first for message in end.take(100) if isinstance(message, Batch)]
        producer.join(LONG)
        assert firsts == list(range(100))
        edge.close()


@pytest.mark.parametrize("capacity", [1, 1000, 100_000])
def test_messages_larger_than_the_capacity_pass_one_by_one(consumers: Listen, capacity: int) -> None:
    with consumers() as end:
        edge = end.connect(capacity=capacity)

        def produce() -> None:
            for first in range(20):
                edge.put(Batch("default", ROWS, first))
                edge.put(Punctuation(first))

        producer = threading.Thread(target=produce)
        producer.start()
        assert [message for message in end.take(40) if isinstance(message, Punctuation)] == [
            Punctuation(first) for first in range(20)
        ]
        producer.join(LONG)
        edge.close()


def test_slices_of_a_large_batch_do_not_stop_the_edge(consumers: Listen) -> None:
    """The producer counts the memory that a slice keeps alive, the consumer what has arrived of it."""
    large = pa.record_batch({"n": pa.array([None, *range(19_999)])})
    with consumers() as end:
        edge = end.connect(capacity=50_000)

        def produce() -> None:
            for first in range(10):
                edge.put(Batch("default", large.slice(first, 1), first))

        producer = threading.Thread(target=produce)
        producer.start()
        assert [message.first for message in end.take(10) if isinstance(message, Batch)] == list(range(10))
        producer.join(LONG)
        edge.close()


def test_control_messages_never_wait(consumers: Listen) -> None:
    with consumers() as end:
        edge = end.connect(capacity=1)
        sent: list[Message] = [Watermark(number) for number in range(100)]
        sent += [Punctuation(number) for number in range(10)]
        for message in sent:
            edge.put(message)
        assert end.take(len(sent)) == sent
        edge.close()


def test_closing_wakes_a_producer_that_waits(consumers: Listen) -> None:
    with consumers() as end:
        edge = end.connect(capacity=1)
        edge.put(Batch("default", ROWS))
        waiting = threading.Timer(SHORT, edge.close)
        waiting.start()
        with pytest.raises(StoppedError, match="stopped"):
            edge.put(Batch("default", ROWS))
        assert not edge.has_room
        assert edge.join(LONG)
        assert not end.failures, "closing is no failure"


def test_a_consumer_that_is_stopped_is_reported_to_the_producer(consumers: Listen) -> None:
    with consumers() as end:
        edge = end.connect(capacity=1)
        edge.put(Batch("default", ROWS))
        end.take(1)
        end.inbox.close()
        with pytest.raises(StoppedError, match="stopped"):
            for _ in repeatedly():
                edge.put(Batch("default", ROWS))
        assert isinstance(end.failure(), StoppedError)
        assert edge.join(LONG)


def test_a_consumer_that_is_gone_is_named(consumers: Listen) -> None:
    with consumers() as end:
        pass
    edge = end.connect()
    failure = end.failure()
    assert isinstance(failure, ConnectionLostError)
    assert "component 'c', task 0 cannot be reached" in str(failure)
    with pytest.raises(ConnectionLostError):
        edge.push(Barrier(1))
    assert len(end.failures) == 1


def test_a_replaced_producer_is_refused_and_its_successor_goes_on(consumers: Listen) -> None:
    with consumers() as end:
        old = end.connect(incarnation=0)
        for number in range(2):
            old.push(Punctuation(number))
        wait_for(lambda: end.inbox.nbytes == 2 * 64)
        new = end.connect(incarnation=1)
        for number in range(10, 10 + STEPS_UNDER_WAY):
            new.push(Punctuation(number))
        wait_for(lambda: end.inbox.nbytes == (2 + STEPS_UNDER_WAY) * 64)
        old.push(Punctuation(2))
        assert isinstance(end.failure(), StaleStreamError)
        assert "incarnation 0 has been replaced by 1" in str(end.failure())
        end.take(2)
        assert not done_within(lambda: new.has_room, SHORT), "what the old one sent counts as taken from the new one"
        assert end.take(2) == [Punctuation(10), Punctuation(11)]
        wait_for(lambda: new.has_room)
        new.close()


@pytest.mark.parametrize("rights", [None, (Grant(Right.WRITE, "in"), Grant(Right.CONTROL, "in"))])
def test_edges_need_their_own_token(consumers: Listen, rights: tuple[Grant, ...] | None) -> None:
    with consumers() as end:
        edge = end.connect(token="guess" if rights is None else end.authority.issue(*rights))
        edge_ended = edge.join(LONG)
        assert edge_ended
        assert isinstance(end.failure(), AuthenticationError)
        assert end.inbox.poll() is None


@pytest.mark.parametrize(("index", "task"), [(2, 0), (0, 2)])
def test_an_edge_that_does_not_exist_is_refused(consumers: Listen, index: int, task: int) -> None:
    with consumers() as end:
        end.connect(index=index, task=task)
        failure = end.failure()
        assert isinstance(failure, InputError)
        assert "no such edge" in str(failure)


def test_large_frames_need_no_copy(consumers: Listen) -> None:
    large = pa.record_batch({"a": np.arange(50_000), "b": np.arange(50_000) / 3})
    with consumers() as end:
        edge = end.connect(capacity=1 << 24)
        for first in range(5):
            edge.put(Batch("x" * first, large, first))
            (received,) = end.take(1)
            assert isinstance(received, Batch)
            assert received.rows.equals(large)
            assert received.rows.column("a").to_numpy().flags.aligned
        edge.close()


def test_a_turnstile_lets_each_message_of_the_newest_incarnation_pass_once() -> None:
    turnstile = Turnstile("p[0]")
    arrived: list[Message] = []
    assert turnstile.open(0)
    turnstile.deliver(0, 0, [Barrier(0), Barrier(1)], arrived.extend)
    turnstile.deliver(0, 1, [Barrier(1), Barrier(2)], arrived.extend)
    turnstile.deliver(0, 0, [Barrier(0)], arrived.extend)
    assert arrived == [Barrier(0), Barrier(1), Barrier(2)]
    assert not turnstile.open(0)
    assert turnstile.open(1)
    with pytest.raises(StaleStreamError, match="incarnation 0 has been replaced by 1"):
        turnstile.deliver(0, 3, [Barrier(3)], arrived.extend)
    with pytest.raises(StaleStreamError, match="has been replaced"):
        turnstile.open(0)
    turnstile.deliver(1, 0, [Barrier(10)], arrived.extend)
    with pytest.raises(StaleStreamError, match="message 2 came instead of message 1"):
        turnstile.deliver(1, 2, [Barrier(12)], arrived.extend)
    assert arrived == [Barrier(0), Barrier(1), Barrier(2), Barrier(10)]


def test_a_turnstile_of_a_new_life_refuses_edges_of_older_ones() -> None:
    turnstile = Turnstile("p[0]", least=3)
    with pytest.raises(StaleStreamError, match="incarnation 2 has been replaced by 3"):
        turnstile.open(2)
    assert turnstile.open(3)


def test_messages_that_could_not_be_pushed_are_still_expected() -> None:
    turnstile = Turnstile("p[0]")
    turnstile.open(0)

    def stopped(messages: object) -> None:
        raise StoppedError("stopped")

    with pytest.raises(StoppedError):
        turnstile.deliver(0, 0, [Barrier(0)], stopped)
    arrived: list[Message] = []
    turnstile.deliver(0, 0, [Barrier(0)], arrived.extend)
    assert arrived == [Barrier(0)]
