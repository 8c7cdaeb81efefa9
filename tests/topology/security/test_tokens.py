"""Tokens: the rights of each, and that they are never printed."""

import logging
import pickle

import pytest

from topology import AuthenticationError, Endpoint
from topology.flight.call_options import token_in
from topology.security.tokens import Authority, Caller, Grant, Right


def test_a_token_allows_what_it_was_issued_for_and_nothing_else() -> None:
    authority = Authority()
    write = authority.issue(Grant(Right.WRITE, "left"))
    read = authority.issue(Grant(Right.READ, "results"))
    assert authority.rights_of(write) == {Grant(Right.WRITE, "left")}
    caller = Caller(authority.rights_of(write))
    caller.require(Right.WRITE, "left")
    for right, name in [(Right.WRITE, "right"), (Right.READ, "left"), (Right.CONTROL, "left"), (Right.CHANNEL, "")]:
        with pytest.raises(AuthenticationError, match="the token does not grant the right to"):
            caller.require(right, name)
    assert authority.rights_of(read) == {Grant(Right.READ, "results")}


@pytest.mark.parametrize("wrong", ["", "x", "Bearer", "\udcff", "ü" * 40, "0" * 100_000])
def test_an_unknown_token_allows_nothing(wrong: str) -> None:
    authority = Authority()
    token = authority.issue(Grant(Right.WRITE, "left"))
    assert authority.rights_of(wrong) == frozenset()
    assert authority.rights_of(token[:-1]) == frozenset()
    assert authority.rights_of(token + "x") == frozenset()


def test_tokens_are_long_and_never_the_same() -> None:
    authority = Authority()
    tokens = {authority.issue(Grant(Right.WRITE, "left")) for _ in range(100)}
    assert len(tokens) == 100
    assert min(len(token) for token in tokens) >= 40


@pytest.mark.parametrize(
    "headers",
    [[], [("authorization", "Bearer ")], [("authorization", b"Bearer x")],
     [("authorization", "Bearer a"), ("authorization", "Bearer b")]],
)  # fmt: skip
def test_a_call_that_presents_no_token_or_several_presents_none(headers: list[tuple[str, str | bytes]]) -> None:
    assert token_in(headers) == ""
    assert token_in([*headers[:0], ("Authorization", "Bearer good")]) == "good"


def test_an_authority_sent_to_a_worker_knows_the_tokens_but_does_not_hold_them() -> None:
    authority = Authority()
    token = authority.issue(Grant(Right.WRITE, "left"))
    sent = pickle.dumps(authority)
    assert token.encode() not in sent
    assert token not in repr(vars(authority))
    assert pickle.loads(sent).rights_of(token) == {Grant(Right.WRITE, "left")}


def test_tokens_are_not_printed(caplog: pytest.LogCaptureFixture) -> None:
    authority = Authority()
    token = authority.issue(Grant(Right.WRITE, "left"))
    endpoint = Endpoint("grpc://127.0.0.1:1", token)
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("interlace").warning("%s %r %s", endpoint, authority, [endpoint])
    assert token not in caplog.text
    assert pickle.loads(pickle.dumps(endpoint)) == endpoint
