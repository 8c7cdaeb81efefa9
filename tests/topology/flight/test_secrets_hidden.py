"""Tokens and keys are in no repr, no dictionary, no log line and no traceback, not even one that shows values."""

import dataclasses
import logging
import pickle
import traceback
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from topology import (
    Authority,
    Certificate,
    Credentials,
    Endpoint,
    FlightClient,
    Grant,
    Input,
    InterlaceError,
    LocalRuntime,
    Right,
    RunningTopology,
    Tls,
    TopologyBuilder,
)
from topology.flight.call_options import action_options, call_options
from topology.handle.endpoint import Secret

SCHEMA = pa.schema([("t", pa.int64())])


@dataclasses.dataclass(frozen=True)
class Order:
    """As the descriptions that workers get: holds an endpoint, a token and a certificate."""

    endpoint: Endpoint
    token: str
    certificate: Certificate
    authority: Authority


@pytest.fixture
def running() -> Iterator[RunningTopology]:
    builder = TopologyBuilder("secretive")
    builder.input("in", Input(schema=SCHEMA, event_time="t"))
    builder.sink().shuffle_grouping("in")
    with LocalRuntime().launch(builder.build()) as handle:
        yield handle


def everything_shown(thing: object, depth: int = 3) -> Iterator[str]:
    """All ways in which an object is shown by accident, and those of what it holds."""
    yield from (repr(thing), str(thing) if not isinstance(thing, Secret) else "", f"{[thing]}")
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        yield repr(dataclasses.asdict(thing))
        yield repr(dataclasses.astuple(thing))
    held = getattr(thing, "__dict__", {})
    yield repr(held)
    for value in held.values() if depth else ():
        yield from everything_shown(value, depth - 1)


def test_no_object_shows_a_token_or_a_key() -> None:
    authority, credentials = Authority(), Credentials()
    token = authority.issue(Grant(Right.WRITE, "in"))
    certificate = credentials.issue("10.0.0.5")
    endpoint = Endpoint("grpc+tls://10.0.0.5:1", str(token), credentials.root)
    order = Order(endpoint, token, certificate, authority)
    client = FlightClient(endpoint)
    things: list[Any] = [
        endpoint, authority, credentials, certificate, order, client, call_options(token), action_options(token),
        Tls(certificate.chain_pem, str(certificate.key_pem), certificate.root),
        Tls(certificate.chain_pem, str(certificate.key_pem)).read(), pickle.loads(pickle.dumps(order)),
    ]  # fmt: skip
    key = str(certificate.key_pem).splitlines()[1]
    try:
        for thing in things:
            for shown in everything_shown(thing):
                assert str(token) not in shown, type(thing)
                assert key not in shown, type(thing)
    finally:
        client.close()


def test_plain_text_in_the_same_places_would_be_found() -> None:
    held = Order(Endpoint("grpc://127.0.0.1:1", "x"), "canary-token", Certificate("", "", None), Authority())
    assert any("canary-token" in shown for shown in everything_shown(held))


def test_neither_logs_nor_tracebacks_show_a_token(
    running: RunningTopology, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    endpoint = running.endpoint("in", control=True)
    dead = Endpoint("grpc://127.0.0.1:1", str(endpoint.token))
    untrusted = Endpoint(endpoint.location.replace("grpc:", "grpc+tls:"), str(endpoint.token), Credentials().root)
    told: list[str] = []
    with caplog.at_level(logging.DEBUG):
        for target in (endpoint, dead, untrusted):
            with FlightClient(target) as client:
                calls = [
                    lambda: client.send("in", "a", pa.record_batch({"wrong": [1]})),
                    lambda: client.commit("in", "a", "attempt", 1),
                    lambda: client.open("nowhere", "a"),
                    lambda: next(client.results("in")),
                ]
                for call in calls:
                    with pytest.raises(InterlaceError) as failed:
                        call()
                    shown = traceback.TracebackException.from_exception(failed.value, capture_locals=True)
                    told += [str(failed.value), repr(failed.value), *shown.format()]
    captured = capfd.readouterr()
    told += [caplog.text, captured.out, captured.err]
    assert len(told) > 24
    assert [text for text in told if endpoint.token in text] == []
