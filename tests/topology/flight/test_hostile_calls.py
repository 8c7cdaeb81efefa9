"""Hostile calls: operations, names, tokens and orders of calls that make no sense; half streams; quotas."""

import json
import random
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from tests.topology.flight.hostile_calls import SERVICE, Outcome, Victim, field, flight_data, ipc_messages, rows_of
from tests.topology.waiting import wait_for

QUOTAS = {"sources": 20, "streams": 24, "connections": 4, "staged_bytes": 20_000, "attempts": 10}


@pytest.fixture(scope="module")
def victim() -> Iterator[Victim]:
    made = Victim(**QUOTAS)
    made.works()
    yield made
    made.close()


def action(kind: str | bytes, subject: object, body: bytes = b"") -> bytes:
    named = subject if isinstance(subject, bytes) else json.dumps(subject).encode()
    return field(1, kind.encode() if isinstance(kind, str) else kind) + field(2, named + b"\n" + body)


def rows(*path: str | bytes, metadata: bytes = b"") -> list[bytes]:
    schema, batch = ipc_messages(rows_of([10**9], [1]))
    return [flight_data(*schema, path=path), flight_data(*batch, metadata=metadata)]


def refused(outcome: Outcome, *kinds: str) -> None:
    assert outcome.refused, outcome
    assert outcome.kind in (kinds or ("InputError", "UnknownInputError", "QuotaError", "AuthenticationError")), outcome


SUBJECTS: list[object] = [
    b"", b"\xff\xfe\x00", b"{}", b"[" * 100_000, b'["R"' * 1000, b"[1e999]", b"[" + b"9" * 10_000 + b"]",
    b'["\\ud800"]', b'"R"', b"null", b'["R", null]', b'[["R"]]', b'["R", "' + b"x" * 20_000 + b'"]', [], [""],
    ["R"] * 50, ["nobody", "a"], ["R", "a\0b"], ["R", "a\nb"], ["R", "x" * 2000], ["R", ""], ["R\0", "a"],
    ["S'; DROP TABLE", "a"], ["../R", "a"],
]  # fmt: skip


@pytest.mark.parametrize("kind", ["open", "pin", "commit", "discard", "finish", "schema", "", "x" * 5000, b"\xff\x00"])
def test_actions_with_any_subject_are_refused(victim: Victim, kind: str | bytes) -> None:
    for subject in SUBJECTS:
        for body in (b"", b"\xff" * 100):
            refused(victim.ask("DoAction", action(kind, subject, body)))
        if isinstance(subject, list):
            refused(victim.outcome(victim.begin_put(rows(kind, *subject), method="DoExchange")))
    victim.works()


def test_commits_and_ends_out_of_order_are_refused(victim: Victim) -> None:
    calls: list[tuple[str, list[str]]] = [
        ("commit", ["R", "nobody", "1", "5"]),
        ("commit", ["R", "nobody", "1", "-1"]),
        ("commit", ["R", "nobody", "1", "9" * 400]),
        ("commit", ["R", "nobody", "1", "\u0663"]),
        ("commit", ["R", "nobody", "1", "1e3"]),
        ("commit", ["R", "good", "1", "0"]),
        ("finish", ["R", "nobody"]),
        ("finish", ["R", "good", "x"]),
    ]
    for kind, subject in calls:
        refused(victim.ask("DoAction", action(kind, subject)), "InputError")
    victim.works()


def test_paths_and_metadata_that_make_no_sense_are_refused(victim: Victim) -> None:
    paths: list[tuple[str | bytes, ...]] = [
        (), ("send",), ("send", "R"), ("send", "R", ""), ("send", "R", "a", "b"), ("stage", "R", "a"), ("x", "R", "a"),
        ("send", "nobody", "a"), (b"\xff\xfe", "R", "a"), ("send", b"R\xff", "a"), ("send", "R", b"\xff"),
        ("send", "R", "a\0"), ("send", "R", "x" * 2000), ("stage", "R", "a", "y" * 2000), ("channel", "0", "0"),
        tuple(["x"] * 1000), ("send", "R", "a\u202eb"), ("send", "R", "\x1b[2J"),
    ]  # fmt: skip
    for path in paths:
        refused(victim.put(rows(*path)))
        refused(victim.outcome(victim.begin_put(rows(*path), method="DoExchange")))
    for metadata in (b"\xff\xfe", b"a\0b", b"x" * 2000, b"x" * 70_000):
        refused(victim.put(rows("send", "R", "a", metadata=metadata)))
    victim.works()


def test_tickets_that_make_no_sense_are_refused(victim: Victim) -> None:
    seed = random.Random(3)
    contents = [b"", b"\0", b'["results"]', b'["results", "nobody"]', b'["x", "results"]', b"[" * 50_000]
    for content in [*contents, *(seed.randbytes(50) for _ in range(20))]:
        refused(victim.ask("DoGet", field(1, content), victim.headers("results")))
        refused(victim.ask("DoGet", content, victim.headers("results")))
    victim.works()


def test_other_methods_are_not_there(victim: Victim) -> None:
    for method in (
        "Handshake",
        "ListFlights",
        "GetFlightInfo",
        "GetSchema",
        "PollFlightInfo",
        "ListActions",
        "x" * 2000,
    ):
        assert victim.ask(method, b"").code == "UNIMPLEMENTED"


def test_calls_without_the_right_token_learn_nothing(victim: Victim) -> None:
    token = str(victim.endpoints["R"].token)
    wrong: list[list[tuple[str, str | bytes]]] = [
        [],
        [("authorization", "")],
        [("authorization", "Bearer ")],
        [("authorization", f"Bearer {token[:-1]}")],
        [("authorization", f"Bearer {token}x")],
        [("authorization", f"Bearer {token}"), ("authorization", f"Bearer {token}")],
        [("authorization", f"Basic {token}")],
        [("authorization-bin", token.encode())],
        [("authorization", "Bearer " + "x" * 4000)],
        [("authentication", f"Bearer {token}")],
    ]
    for headers in wrong:
        for outcome in (
            victim.put(rows("send", "R", "a"), headers),
            victim.ask("DoAction", action("open", ["R", "a"]), headers),
        ):
            assert (outcome.code, outcome.kind) == ("UNAUTHENTICATED", "AuthenticationError"), headers
            assert token not in outcome.text
    too_long = victim.put(rows("send", "R", "a"), [("authorization", "Bearer " + "x" * 100_000)])
    assert too_long.refused
    refused(victim.put(rows("send", "R", "a"), victim.headers("S")), "AuthenticationError")
    refused(victim.put(rows("send", "R", "a"), victim.headers("results")), "AuthenticationError")
    refused(victim.ask("DoAction", action("finish", ["R"]), victim.headers("write only")), "AuthenticationError")
    victim.works()


def test_half_streams_leave_no_trace(victim: Victim) -> None:
    for length in (0, 1, 2):
        for _ in range(30):
            sent, release = threading.Event(), threading.Event()
            half = rows("stage", "R", "half", "1")[:length]

            def messages(half: list[bytes] = half, sent: Any = sent, release: Any = release) -> Iterator[bytes]:
                yield from half
                sent.set()
                release.wait(60)

            call = victim.begin_put(messages())
            wait_for(lambda sent=sent, call=call: sent.is_set() or not call.is_active())  # type: ignore[misc]
            call.cancel()
            release.set()
    wait_for(lambda: not victim.ask("DoAction", action("schema", ["R"])).refused, "cancelled calls were never given up")
    victim.works()


def test_a_token_has_its_quota_of_calls_and_gets_them_back(victim: Victim) -> None:
    release = threading.Event()

    def silent() -> Iterator[bytes]:
        yield rows("stage", "R", "slow", "1")[0]
        release.wait(120)

    # One connection carries as many calls as one token may have: the others use a second one.
    channels = [victim.connect(), victim.connect()]
    calls = [
        channels[number % 2].stream_stream(SERVICE + "DoPut")(silent(), metadata=victim.headers("write only"))
        for number in range(QUOTAS["streams"])
    ]

    def is_full() -> bool:
        outcome = victim.ask("DoAction", action("schema", ["R"]), victim.headers("write only"))
        return outcome.kind == "QuotaError" and "24 calls under way" in outcome.text

    wait_for(is_full, "the silent calls were never counted")
    victim.works()  # other tokens are not affected
    for call in calls:
        call.cancel()
    release.set()
    wait_for(lambda: not is_full(), "the calls were never given back")
    for channel in channels:
        channel.close()


def test_a_token_has_its_quota_of_connections(victim: Victim) -> None:
    release = threading.Event()

    def silent() -> Iterator[bytes]:
        yield rows("stage", "R", "slow", "1")[0]
        release.wait(120)

    def begin(channel: Any) -> Any:
        return channel.stream_stream(SERVICE + "DoPut")(silent(), metadata=victim.headers("write only"))

    channels = [victim.connect() for _ in range(QUOTAS["connections"])]
    calls = [begin(channel) for channel in channels]

    def is_full() -> bool:
        for number, channel in enumerate(channels):
            if not release.is_set() and not calls[number].is_active():
                calls[number] = begin(channel)  # it was refused, as calls that were cancelled before still counted
        outcome = victim.ask("DoAction", action("schema", ["R"]), victim.headers("write only"))
        return outcome.kind == "QuotaError" and "4 connections" in outcome.text

    wait_for(is_full, "the connections were never counted")
    assert all(call.is_active() for call in calls)
    release.set()
    for channel in channels:
        channel.close()
    wait_for(lambda: not is_full(), "the connections were never given back")


def test_staged_rows_have_a_quota(victim: Victim) -> None:
    outcome = victim.put(rows("stage", "S", "a", "0"), victim.headers("S"))
    assert outcome.rows == 1
    attempts = [victim.put(rows("stage", "S", "a", str(number)), victim.headers("S")) for number in range(15)]
    assert [outcome.kind for outcome in attempts] == [""] * 10 + ["QuotaError"] * 5
    assert "10 attempts staged" in attempts[-1].text
    schema, batch = ipc_messages(rows_of([10**9] * 200, list(range(200))))
    many = [flight_data(*schema, path=("stage", "S", "a", "1")), *[flight_data(*batch)] * 10]
    outcome = victim.put(many, victim.headers("S"))
    assert outcome.kind == "QuotaError", outcome
    assert "at most 20,000 are taken" in outcome.text
    victim.works()


def test_open_sources_have_a_quota() -> None:
    victim = Victim(**QUOTAS)
    try:
        victim.works()
        opened = [victim.ask("DoAction", action("open", ["R", f"silent {number}"])) for number in range(30)]
        assert [outcome.kind for outcome in opened] == [""] * 19 + ["QuotaError"] * 11, "'good' is one of the 20"
        assert "20 open sources in stream 'R'" in opened[-1].text
        refused(victim.put(rows("send", "R", "one more")), "QuotaError")
        for number in range(19):
            assert not victim.ask("DoAction", action("finish", ["R", f"silent {number}"])).refused
        victim.works()
        assert not victim.ask("DoAction", action("open", ["R", "after"])).refused
    finally:
        victim.close()


def test_a_server_that_has_gone_is_noticed_by_these_tests() -> None:
    victim = Victim()
    victim.close()
    assert not victim.alive()
    with pytest.raises((ValueError, grpc.RpcError)):
        victim.put(rows("send", "R", "a"))
