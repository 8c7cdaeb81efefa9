"""Connections of edges: who is let in, what strangers can do, and that silence is noticed."""

import json
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.topology.flight.relay import Relay, relayed
from tests.topology.waiting import LONG, wait_for
from topology import (
    Authority,
    Barrier,
    Certificate,
    Credentials,
    EdgeReceiver,
    End,
    Grant,
    Inbox,
    Origin,
    Peer,
    Right,
    SocketEdge,
    TopologyError,
)
from topology.edges import edge, edge_receiver, sockets
from topology.edges.hello import HELLO_BYTES, Answer, receive_answer, send_hello
from topology.edges.sockets import LENGTH
from topology.graph.errors import AuthenticationError, ConnectionLostError, InputError, InterlaceError, TlsError
from topology.graph.errors_as_text import error_from_text


@pytest.fixture(scope="module")
def credentials() -> Credentials:
    return Credentials()


class Consumer:
    """One task with one input."""

    def __init__(self, certificate: Certificate | None = None) -> None:
        authority = Authority()
        self.token = authority.issue(Grant(Right.CHANNEL))
        self.inbox = Inbox(1)
        self.receiver = EdgeReceiver(authority, {("c", 0): ((Origin("p", 0, 0),), self.inbox)}, certificate=certificate)
        self.failures: list[Exception] = []

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.receiver.location)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def connect(
        self, certificate: Certificate | None = None, root: str | None = None, relay: Relay | None = None
    ) -> SocketEdge:
        location = self.receiver.location
        if relay is not None:
            location = f"{urlsplit(location).scheme}://127.0.0.1:{relay.port}"
        peer = Peer(location, self.token, root)
        return SocketEdge(peer, ("p", 0), ("c", 0), 0, 0, 1 << 20, self.failures.append, certificate)

    def failure(self) -> Exception:
        wait_for(lambda: bool(self.failures), "the edge did not fail")
        return self.failures[0]

    def works(self, certificate: Certificate | None = None, root: str | None = None) -> bool:
        made = self.connect(certificate, root)
        made.push(Barrier(7))
        arrived = self.inbox.take(timeout=LONG)
        made.close()
        return arrived == (0, Barrier(7))


@pytest.fixture
def consumer() -> Iterator[Consumer]:
    made = Consumer()
    yield made
    made.receiver.close()


@pytest.fixture
def encrypted(credentials: Credentials) -> Iterator[Consumer]:
    made = Consumer(credentials.issue("127.0.0.1"))
    yield made
    made.receiver.close()


def test_only_processes_with_a_certificate_of_the_authority_are_heard(
    encrypted: Consumer, credentials: Credentials
) -> None:
    assert encrypted.works(credentials.issue("127.0.0.1"), credentials.root)
    for shown in (None, Credentials().issue("127.0.0.1")):
        encrypted.failures.clear()
        encrypted.connect(shown, credentials.root)
        assert isinstance(encrypted.failure(), ConnectionLostError)
    assert encrypted.inbox.poll() is None


def test_a_consumer_whose_certificate_another_authority_signed_is_not_trusted(
    encrypted: Consumer, credentials: Credentials
) -> None:
    encrypted.connect(credentials.issue("127.0.0.1"), Credentials().root)
    failure = encrypted.failure()
    assert isinstance(failure, TlsError)
    assert "component 'c', task 0 shows a certificate that is refused here" in str(failure)


def test_nothing_listens_beyond_loopback_without_a_certificate(credentials: Credentials) -> None:
    with pytest.raises(TopologyError, match="without a certificate"):
        EdgeReceiver(Authority(), {}, host="192.0.2.1")
    with pytest.raises(TopologyError, match="use an address of this machine"):
        EdgeReceiver(Authority(), {}, host="203.0.113.77", certificate=credentials.issue("203.0.113.77"))


def test_a_damaged_certificate_is_refused(credentials: Credentials) -> None:
    good = credentials.issue("127.0.0.1")
    with pytest.raises(TopologyError, match=r"cannot listen on 127\.0\.0\.1: .* is its key that of the certificate"):
        EdgeReceiver(Authority(), {}, certificate=Certificate(good.chain_pem, "no key"))


def test_the_rows_of_an_encrypted_edge_cannot_be_read_on_the_way(credentials: Credentials) -> None:
    for certificate in (None, credentials.issue("127.0.0.1")):
        made = Consumer(certificate)
        with relayed(made.address[1]) as relay:
            going = made.connect(certificate, None if certificate is None else certificate.root, relay)
            going.push(End("canary-in-a-coal-mine", "s"))
            going.push(End())
            assert made.inbox.take(timeout=LONG) is not None
            assert going.join(LONG)
            assert (b"canary-in-a-coal-mine" in relay.recorded) == (certificate is None)
            assert (str(made.token).encode() in relay.recorded) == (certificate is None)
        made.receiver.close()


HELLO = {"token": "", "edge": {"component": "c", "task": 0, "index": 0, "incarnation": 0, "capacity": 1}, "session": 0}
GREETINGS = [
    b"", b"\0", b"GET / HTTP/1.1\r\n\r\n", b"[]", b"{}", b"null", b"[" * 10_000, b"\xff" * 100,
    json.dumps(HELLO | {"token": 5}).encode(), json.dumps(HELLO | {"session": "1"}).encode(),
    json.dumps(HELLO | {"edge": {"component": "c"}}).encode(), json.dumps(HELLO | {"edge": [1]}).encode(),
    json.dumps(HELLO | {"edge": HELLO["edge"] | {"task": True}}).encode(),  # type: ignore[operator]
]  # fmt: skip


@pytest.mark.parametrize("greeting", GREETINGS)
def test_what_is_no_greeting_is_refused_and_harms_nobody(greeting: bytes, consumer: Consumer) -> None:
    with socket.create_connection(consumer.address) as stranger:
        stranger.settimeout(LONG)
        stranger.sendall(LENGTH.pack(len(greeting)) + greeting)
        answer, _, content = receive_answer(stranger)
        assert answer is Answer.ERROR
        assert isinstance(error_from_text(content, "the peer"), InputError)
        assert stranger.recv(1) == b""
    assert consumer.works()


@pytest.mark.parametrize("length", [HELLO_BYTES + 1, 2**40, 2**64 - 1])
def test_a_greeting_that_announces_much_is_refused_unread(length: int, consumer: Consumer) -> None:
    with socket.create_connection(consumer.address) as stranger:
        stranger.settimeout(LONG)
        stranger.sendall(LENGTH.pack(length))
        answer, _, content = receive_answer(stranger)
        assert answer is Answer.ERROR
        assert "must begin with a greeting" in str(error_from_text(content, "the peer"))
    assert consumer.works()


@pytest.mark.parametrize("session", [0, 1, -5, 2**70])
def test_a_session_that_was_not_granted_is_refused(session: int, consumer: Consumer) -> None:
    with socket.create_connection(consumer.address) as stranger:
        stranger.settimeout(LONG)
        send_hello(stranger, consumer.token, session=session)
        _, _, content = receive_answer(stranger)
        assert "no such session" in str(error_from_text(content, "the peer"))


def test_a_session_needs_a_token_too(consumer: Consumer) -> None:
    with socket.create_connection(consumer.address) as stranger:
        stranger.settimeout(LONG)
        send_hello(stranger, "guess", session=1)
        _, _, content = receive_answer(stranger)
        assert isinstance(error_from_text(content, "the peer"), AuthenticationError)


def test_strangers_that_say_nothing_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "GREETING_SECONDS", 0.2)
    monkeypatch.setattr(sockets, "CONNECT_SECONDS", LONG)
    monkeypatch.setattr(edge_receiver, "STRANGERS", 2)
    made = Consumer()
    silent = [socket.create_connection(made.address) for _ in range(4)]
    assert made.works()
    for each in silent:
        each.close()
    made.receiver.close()


def test_a_consumer_that_falls_silent_is_reported(consumer: Consumer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge, "SILENCE_SECONDS", 1.0)
    with relayed(consumer.address[1]) as relay:
        going = consumer.connect(relay=relay)
        going.push(Barrier(1))
        assert consumer.inbox.take(timeout=LONG) == (0, Barrier(1))
        relay.cut()
        failure = consumer.failure()
        assert isinstance(failure, ConnectionLostError)
        assert "component 'c', task 0 has fallen silent" in str(failure)
        assert going.join(LONG)


def test_an_idle_edge_lives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_receiver, "ALIVE_SECONDS", 0.05)
    monkeypatch.setattr(edge, "SILENCE_SECONDS", 5.0)
    made = Consumer()
    with relayed(made.address[1]) as relay:
        going = made.connect(relay=relay)
        going.push(Barrier(1))
        assert made.inbox.take(timeout=LONG) == (0, Barrier(1))
        quiet = len(relay.recorded)
        wait_for(lambda: len(relay.recorded) > quiet + 90, "ten signs of life")
        going.push(Barrier(2))
        assert made.inbox.take(timeout=LONG) == (0, Barrier(2))
        going.close()
    made.receiver.close()


def test_closing_the_receiver_ends_its_threads_and_its_producers_learn_of_it(consumer: Consumer) -> None:
    before = {thread.ident for thread in threading.enumerate()}
    going = consumer.connect()
    going.push(Barrier(1))
    assert consumer.inbox.take(timeout=LONG) == (0, Barrier(1))
    consumer.receiver.close()
    assert isinstance(consumer.failure(), InterlaceError)
    assert going.join(LONG)
    with pytest.raises(ConnectionLostError):
        going.push(Barrier(2))
    wait_for(lambda: {thread.ident for thread in threading.enumerate()} <= before, "threads end with the receiver")
