"""What a listener on the wire learns: without TLS everything, with TLS neither rows nor tokens."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

from tests.topology.flight.relay import Relay, relayed
from tests.topology.waiting import wait_for
from topology import (
    AuthenticationError,
    Authority,
    Certificate,
    Credentials,
    Endpoint,
    FlightClient,
    Grant,
    TlsError,
    Topology,
    TopologyBuilder,
)
from topology.entry.ingest import Ingest
from topology.flight.client_port import ClientPort
from topology.flight.server import TopologyServer
from topology.graph.components import Input
from topology.graph.messages import Message
from topology.handle.results_queue import ResultsQueue

ROWS = "canary-in-rows-8c1f"
RESULTS = "canary-in-results-77ae"
NAME = "canary-source-name-19b2"


def topology() -> Topology:
    builder = TopologyBuilder("listened")
    builder.input("in")
    builder.sink().shuffle_grouping("in")
    return builder.build()


@contextmanager
def session(certificate: Certificate | None) -> Iterator[tuple[Relay, list[str]]]:
    """Send rows and read results through a relay; yields it and the tokens that were used."""
    authority, messages = Authority(), list[Message]()
    port = ClientPort(authority, certificate=certificate)
    ingest, results = Ingest(None), ResultsQueue(1_000_000)
    ingest.add("in", Input(), messages.append)
    server = TopologyServer(topology(), ingest, {"results": results}, port=port, authority=authority)
    try:
        with relayed(port.port) as relay:
            write, read = server.endpoint("in"), server.endpoint("results")
            with FlightClient(relay.before(write)) as client:
                client.send("in", NAME, pa.record_batch({"text": [ROWS]}))
            wait_for(lambda: len(messages) > 0, "the rows have not arrived")
            results.put(pa.record_batch({"text": [RESULTS]}))
            results.end()
            with FlightClient(relay.before(read)) as client:
                assert [rows.to_pydict() for rows in client.results("results")] == [{"text": [RESULTS]}]
            yield relay, [str(write.token), str(read.token)]
    finally:
        server.close()
        ingest.close()


def found(recorded: bytes, tokens: list[str]) -> list[str]:
    """The secrets that can be read in what was recorded."""
    return [secret for secret in [ROWS, RESULTS, NAME, *tokens] if secret.encode() in recorded]


def test_with_tls_neither_rows_nor_tokens_can_be_read_on_the_wire() -> None:
    with session(Credentials().issue("127.0.0.1")) as (relay, tokens):
        assert len(relay.recorded) > 1000
        assert found(relay.recorded, tokens) == []


def test_without_tls_the_same_listener_reads_everything() -> None:
    with session(None) as (relay, tokens):
        assert found(relay.recorded, tokens) == [ROWS, RESULTS, NAME, *tokens]


class Curious(Authority):
    """Someone in between, who wants to know tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.learnt: list[str] = []

    def rights_of(self, token: str) -> frozenset[Grant]:
        self.learnt.append(token)
        return frozenset()


def test_someone_in_between_with_another_certificate_learns_no_token() -> None:
    curious, own = Curious(), Credentials()
    impostor = ClientPort(curious, certificate=own.issue("127.0.0.1"))
    try:
        victim = Endpoint(impostor.location, "token", Credentials().root)
        with FlightClient(victim) as client, pytest.raises(TlsError, match="root does not sign"):
            client.open("in", "source")
        assert curious.learnt == []
        trusting = Endpoint(impostor.location, "token", own.root)
        with FlightClient(trusting) as client, pytest.raises(AuthenticationError):
            client.open("in", "source")
        assert curious.learnt == ["token"]
    finally:
        impostor.close()
