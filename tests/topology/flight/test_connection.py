"""Connections: which peers are trusted, what a failed handshake says, and that silence is noticed."""

import datetime as dt
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight
import pytest

from tests.topology.flight.relay import relayed
from tests.topology.waiting import LONG, wait_for
from topology import (
    Authority,
    ConnectionLostError,
    FlightClient,
    Grant,
    InputError,
    LocalRuntime,
    Right,
    TlsError,
    TopologyBuilder,
    connect,
)
from topology.flight import client_port, connection
from topology.flight.call_options import action_options, call_options
from topology.flight.client_port import Call, Chunk, ClientPort
from topology.flight.errors import raised_by
from topology.flight.operations import action, descriptor
from topology.handle.endpoint import Endpoint
from topology.security import certificates
from topology.security.certificates import Credentials
from topology.security.tls import Certificate

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def credentials() -> Credentials:
    return Credentials()


class Peer:
    """A port that counts calls and holds streams open."""

    def __init__(self, certificate: Certificate | None, host: str = "127.0.0.1") -> None:
        authority = Authority()
        self.token = authority.issue(Grant(Right.WRITE, "x"))
        self.port = ClientPort(authority, host, certificate)
        self.port.puts["hold"] = self._hold
        self.port.actions["wait"] = lambda caller, path, body: b"" if self._released.wait(LONG) else b"late"
        self.port.actions["greet"] = self._count
        self.calls = 0
        self._released = threading.Event()

    @property
    def endpoint(self) -> Endpoint:
        return self.port.endpoint(self.token)

    def close(self) -> None:
        self._released.set()
        self.port.close()

    def _count(self, caller: Any, path: Any, body: bytes) -> bytes:
        self.calls += 1
        return b""

    def _hold(self, call: Call, path: tuple[str, ...], chunks: Iterator[Chunk]) -> Iterator[bytes]:
        for chunk in chunks:
            if chunk.metadata:
                yield chunk.metadata


@pytest.fixture(params=["plain", "tls"])
def peer(request: pytest.FixtureRequest, credentials: Credentials) -> Iterator[Peer]:
    made = Peer(credentials.issue("127.0.0.1") if request.param == "tls" else None)
    yield made
    made.close()


@pytest.fixture
def encrypted(credentials: Credentials) -> Iterator[Peer]:
    made = Peer(credentials.issue("127.0.0.1"))
    yield made
    made.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ping after a second of silence."""
    monkeypatch.setattr(connection, "KEEPALIVE_SECONDS", 1.0)


def call(endpoint: Endpoint, operation: str = "greet", timeout: float = LONG) -> None:
    client = connect(endpoint)
    try:
        with raised_by("the peer"):
            for _ in client.do_action(action(operation), action_options(endpoint.token, timeout)):
                pass
    finally:
        client.close()


class Stream:
    """A stream to a peer that holds it open."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._client = connect(endpoint)
        self._writer, self._reader = self._client.do_exchange(descriptor("hold"), call_options(endpoint.token))
        self._writer.begin(pa.schema([]))

    def echo(self) -> bytes:
        with raised_by("the peer"):
            self._writer.write_metadata(b"anyone there?")
            return bytes(self._reader.read_chunk().app_metadata.to_pybytes())

    def wait_for_more(self) -> None:
        """Wait for a message that does not come."""
        with raised_by("the peer"):
            self._reader.read_chunk()

    def close(self) -> None:
        self._reader.cancel()
        try:
            self._writer.close()
        except (flight.FlightError, pa.ArrowException):
            pass
        self._client.close()


# trust


def test_the_root_of_the_topology_is_trusted(encrypted: Peer) -> None:
    call(encrypted.endpoint)
    assert encrypted.calls == 1


@pytest.mark.parametrize("root", [None, "other"], ids=["the system's roots", "another topology's root"])
def test_a_peer_with_a_certificate_of_another_root_is_refused(root: str | None, encrypted: Peer) -> None:
    other = Endpoint(encrypted.endpoint.location, encrypted.token, root and Credentials().root)
    with pytest.raises(TlsError, match=r"the peer shows a certificate that the endpoint's root does not sign: use an"):
        call(other)
    assert encrypted.calls == 0


def test_a_certificate_for_another_address_is_refused(credentials: Credentials) -> None:
    peer = Peer(credentials.issue("10.0.0.5"), host="127.0.0.2")
    try:
        with pytest.raises(TlsError, match="shows a certificate for another address"):
            call(peer.endpoint)
    finally:
        peer.close()


@pytest.mark.parametrize(("days", "words"), [(-4000, "has expired"), (4000, "is not valid yet")])
def test_a_certificate_out_of_its_time_is_refused(days: int, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    then = dt.datetime.now(dt.UTC) + dt.timedelta(days=days)
    monkeypatch.setattr(certificates, "now", lambda: then)
    peer = Peer(Credentials().issue("127.0.0.1"))
    try:
        with pytest.raises(TlsError, match=f"shows a certificate that {words}"):
            call(peer.endpoint)
    finally:
        peer.close()


def test_an_encrypted_endpoint_of_a_plain_port_is_refused(credentials: Credentials) -> None:
    peer = Peer(None)
    try:
        with pytest.raises(TlsError, match="does not speak TLS"):
            call(Endpoint(peer.endpoint.location.replace("grpc:", "grpc+tls:"), peer.token, credentials.root))
    finally:
        peer.close()


def test_a_plain_endpoint_of_an_encrypted_port_is_refused(encrypted: Peer) -> None:
    with pytest.raises(ConnectionLostError, match=r"closed the connection at once: .* it expects TLS"):
        call(Endpoint(encrypted.endpoint.location.replace("grpc+tls:", "grpc:"), encrypted.token))
    assert encrypted.calls == 0


def test_nothing_at_the_address_is_reported_as_such() -> None:
    with pytest.raises(ConnectionLostError, match="the peer cannot be reached"):
        call(Endpoint("grpc://127.0.0.1:1", "token"))
    with pytest.raises(ConnectionLostError, match="the peer cannot be found"):
        call(Endpoint("grpc://no-such-host.invalid:1", "token"))


# silence


def test_an_action_without_an_answer_meets_its_deadline(peer: Peer) -> None:
    with pytest.raises(ConnectionLostError, match="the peer did not answer in time"):
        call(peer.endpoint, "wait", timeout=0.2)


def test_an_idle_stream_outlives_many_keepalive_periods(encrypted: Peer, impatient: None) -> None:
    with relayed(encrypted.port.port) as relay:
        stream = Stream(relay.before(encrypted.endpoint))
        try:
            assert stream.echo() == b"anyone there?"
            quiet = len(relay.recorded)
            # a ping and its answer take less than 200 bytes
            wait_for(lambda: len(relay.recorded) > quiet + 1200, "six pings and their answers")
            assert stream.echo() == b"anyone there?"
        finally:
            stream.close()


def test_a_cut_link_ends_an_idle_stream(encrypted: Peer, impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PING_SECONDS", 1.0)
    with relayed(encrypted.port.port) as relay:
        stream = Stream(relay.before(encrypted.endpoint))
        try:
            assert stream.echo() == b"anyone there?"
            relay.cut()
            began = time.monotonic()
            with pytest.raises(ConnectionLostError, match="has fallen silent"):
                stream.wait_for_more()
            assert time.monotonic() - began < 50  # gRPC's own patience is a minute
        finally:
            stream.close()


def test_a_reader_that_is_cut_off_makes_room_for_the_next(impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PING_SECONDS", 1.0)
    monkeypatch.setattr(client_port, "PING_SECONDS", 2)
    builder = TopologyBuilder("read")
    builder.input("in")
    builder.sink().shuffle_grouping("in")
    with LocalRuntime().launch(builder.build()) as running:
        endpoint = running.endpoint("results")
        port: ClientPort = running._server._port  # type: ignore[attr-defined]
        with relayed(port.port) as relay, FlightClient(relay.before(endpoint)) as first:
            running.send("in", pa.record_batch({"x": [1]}))
            reading = first.results("results")
            assert next(reading).to_pydict() == {"x": [1]}
            relay.cut()
            with FlightClient(endpoint) as second:
                with pytest.raises(InputError, match="has a reader already"):
                    next(second.results("results"))
                queue = running._group.results["results"]  # type: ignore[attr-defined]
                wait_for(lambda: queue._reader is None, "the first reader is given up")
                running.send("in", pa.record_batch({"x": [2]}))
                running.finish()
                found = [value for batch in second.results("results") for value in batch.column("x").to_pylist()]
                assert found == [1, 2], "what was not acknowledged comes again"
            with pytest.raises(ConnectionLostError):
                next(reading)
