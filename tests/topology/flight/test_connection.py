"""Connections: which peers are trusted, what a failed handshake says, and that silence is noticed."""

import datetime as dt
import socket
import subprocess
import sys
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
    FlightPort,
    Grant,
    InputError,
    LocalRuntime,
    Right,
    TlsError,
    TopologyBuilder,
    connect,
)
from topology.flight import certificates, client_port, connection
from topology.flight.auth import action_options, call_options
from topology.flight.certificates import Credentials
from topology.flight.client_port import ClientPort
from topology.flight.errors import raised_by
from topology.flight.heartbeat import Heartbeats
from topology.flight.operations import HEARTBEAT, action, descriptor
from topology.flight.tls import Certificate
from topology.handle.endpoint import Endpoint

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def credentials() -> Credentials:
    return Credentials()


class Peer:
    """A port that counts heartbeats and holds streams open."""

    def __init__(self, certificate: Certificate | None, host: str = "127.0.0.1") -> None:
        authority = Authority()
        self.token = authority.issue(Grant(Right.WRITE, "x"))
        self.port = FlightPort(authority, host, certificate)
        self.port.exchanges["hold"] = self._hold
        self.port.actions["wait"] = lambda caller, path, body: b"" if self._released.wait(LONG) else b"late"
        self.port.actions[HEARTBEAT] = self._count
        self.heartbeats = 0
        self._released = threading.Event()

    @property
    def endpoint(self) -> Endpoint:
        return self.port.endpoint(self.token)

    def close(self) -> None:
        self._released.set()
        self.port.close()

    def _count(self, caller: Any, path: Any, body: bytes) -> bytes:
        self.heartbeats += 1
        return b""

    def _hold(self, caller: Any, path: Any, reader: Any, writer: Any) -> None:
        for chunk in reader:
            writer.write_metadata(chunk.app_metadata.to_pybytes())


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
def impatient(monkeypatch: pytest.MonkeyPatch) -> Heartbeats:
    """A ping after a second of silence, and heartbeats of their own."""
    own = Heartbeats(0.25)
    monkeypatch.setattr(connection, "KEEPALIVE_SECONDS", 1.0)
    monkeypatch.setattr(connection, "heartbeats", own)
    return own


def call(endpoint: Endpoint, operation: str = HEARTBEAT, timeout: float = LONG) -> None:
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
    assert encrypted.heartbeats == 1


@pytest.mark.parametrize("root", [None, "other"], ids=["the system's roots", "another topology's root"])
def test_a_peer_with_a_certificate_of_another_root_is_refused(root: str | None, encrypted: Peer) -> None:
    other = Endpoint(encrypted.endpoint.location, encrypted.token, root and Credentials().root)
    with pytest.raises(TlsError, match=r"the peer shows a certificate that the endpoint's root does not sign: use an"):
        call(other)
    assert encrypted.heartbeats == 0


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
    assert encrypted.heartbeats == 0


def test_nothing_at_the_address_is_reported_as_such() -> None:
    with pytest.raises(ConnectionLostError, match="the peer cannot be reached"):
        call(Endpoint("grpc://127.0.0.1:1", "token"))
    with pytest.raises(ConnectionLostError, match="the peer cannot be found"):
        call(Endpoint("grpc://no-such-host.invalid:1", "token"))


# silence


def test_an_action_without_an_answer_meets_its_deadline(peer: Peer) -> None:
    with pytest.raises(ConnectionLostError, match="the peer did not answer in time"):
        call(peer.endpoint, "wait", timeout=0.2)


def test_an_idle_stream_outlives_many_keepalive_periods(encrypted: Peer, impatient: Heartbeats) -> None:
    stream = Stream(encrypted.endpoint)
    try:
        wait_for(lambda: encrypted.heartbeats >= 24, "24 heartbeats, six keepalive periods")
        assert stream.echo() == b"anyone there?"
    finally:
        stream.close()


def test_without_heartbeats_the_server_would_end_an_idle_stream(
    encrypted: Peer, impatient: Heartbeats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "heartbeats", Heartbeats(LONG))
    stream = Stream(encrypted.endpoint)
    try:
        with pytest.raises(ConnectionLostError, match="has fallen silent"):
            stream.wait_for_more()
    finally:
        stream.close()


def test_a_cut_link_ends_an_idle_stream(
    encrypted: Peer, impatient: Heartbeats, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_a_reader_that_is_cut_off_makes_room_for_the_next(
    impatient: Heartbeats, monkeypatch: pytest.MonkeyPatch
) -> None:
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
                wait_for(lambda: not running._server._readers, "the first reader is given up")  # type: ignore[attr-defined]
                running.send("in", pa.record_batch({"x": [2]}))
                assert next(second.results("results")).to_pydict() == {"x": [2]}
            with pytest.raises(ConnectionLostError):
                next(reading)


def test_heartbeats_end_with_their_client(encrypted: Peer, impatient: Heartbeats) -> None:
    first, second = connect(encrypted.endpoint), connect(encrypted.endpoint)
    wait_for(lambda: encrypted.heartbeats >= 4, "heartbeats")
    assert impatient.watched == 2
    first.close()
    wait_for(lambda: impatient.watched == 1, "the closed client is forgotten")
    del second
    wait_for(lambda: impatient.watched == 0, "the dropped client is forgotten")
    third = connect(encrypted.endpoint)
    seen = encrypted.heartbeats
    wait_for(lambda: encrypted.heartbeats > seen, "heartbeats begin again")
    third.close()


PROGRAM = """
import sys, time
from topology import Authority, Endpoint, FlightPort, Grant, Right, connect
from topology.flight import connection, heartbeat

heartbeat.ANSWER_SECONDS = 0.5
connection.heartbeats = heartbeat.Heartbeats(0.001)
authority, heard = Authority(), []
token = authority.issue(Grant(Right.READ, "x"))
port = FlightPort(authority)
port.actions["heartbeat"] = lambda *call: heard.append(call) or b""
clients = [connect(port.endpoint(token)), connect(Endpoint(sys.argv[1], token))]
while len(heard) < 3:
    time.sleep(0.001)


class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(1.5)


ends_slowly = Slow()  # calls return while the interpreter goes away
"""


def test_a_program_ends_in_the_midst_of_heartbeats() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:  # takes connections and never answers
        finished = subprocess.run(
            [sys.executable, "-c", PROGRAM, f"grpc://127.0.0.1:{mute.getsockname()[1]}"],
            capture_output=True, text=True, check=False, cwd=ROOT, timeout=LONG,
        )  # fmt: skip
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")


def test_a_port_for_peers_talks_only_to_those_who_show_a_certificate_of_its_authority(credentials: Credentials) -> None:
    authority = Authority()
    token = authority.issue(Grant(Right.CHANNEL))
    port = FlightPort(authority, certificate=credentials.issue("127.0.0.1"), peers_only=True)
    try:
        beat = action(HEARTBEAT)
        with connect(port.endpoint(token), credentials.issue("127.0.0.1")) as peer:
            assert len(list(peer.do_action(beat, action_options(token)))) == 1
        for shown in (None, Credentials().issue("127.0.0.1")):
            with (
                connect(port.endpoint(token), shown) as stranger,
                pytest.raises((flight.FlightError, pa.ArrowException)),
            ):
                list(stranger.do_action(beat, action_options(token)))
    finally:
        port.close()
