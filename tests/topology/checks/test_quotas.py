"""What one token may use, and that it gets back what it no longer uses."""

from contextlib import ExitStack

import pytest

from topology.checks.quotas import Meter, Quotas, Usage
from topology.graph.errors import InputError, QuotaError, TopologyError


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "7"])
def test_a_quota_is_a_whole_number_above_zero(value: object) -> None:
    with pytest.raises(TopologyError, match=r"Quotas\(streams=.*must be a whole number above 0"):
        Quotas(streams=value)  # type: ignore[arg-type]


def test_calls_are_counted_while_they_last() -> None:
    usage = Usage(Quotas(streams=2))
    with ExitStack() as calls:
        calls.enter_context(usage.call("a"))
        calls.enter_context(usage.call("a"))
        with pytest.raises(QuotaError, match="2 calls under way, and no more are taken: end some, or raise Quotas"):
            calls.enter_context(usage.call("a"))
    with usage.call("a"):
        pass


def test_connections_are_counted_by_their_calls() -> None:
    usage = Usage(Quotas(connections=2))
    with usage.call("a"), usage.call("b"):
        with usage.call("a"):
            pass
        with pytest.raises(QuotaError, match="2 connections"), usage.call("c"):
            pass
    with usage.call("c"):
        pass


def test_sources_are_counted_until_they_end() -> None:
    usage = Usage(Quotas(sources=2))
    living = {"a", "b"}
    for source in ("a", "b", "a"):
        with usage.source("in", source, living.__contains__):
            pass
    with pytest.raises(QuotaError, match="2 open sources in stream 'in'"), usage.source("in", "c", living.__contains__):
        pass
    with usage.source("other", "c", living.__contains__):
        pass
    living.remove("a")
    with usage.source("in", "c", living.__contains__):
        living.add("c")


def test_a_refused_source_uses_nothing() -> None:
    usage = Usage(Quotas(sources=1))
    with pytest.raises(InputError, match="wrong"), usage.source("in", "a", lambda name: True):
        raise InputError("wrong")
    with usage.source("in", "b", lambda name: True):
        pass


def test_each_token_has_its_own_usage() -> None:
    meter = Meter(Quotas(streams=1))
    one, two = meter.of(b"one"), meter.of(b"two")
    with one.call("a"), two.call("a"), pytest.raises(QuotaError), meter.of(b"one").call("a"):
        pass


@pytest.mark.parametrize("name", ["a\0b", "line\nbreak", "\ud800", "\x1b[31m"])
def test_names_that_cannot_be_shown_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot be shown"):
        Quotas().check_name("a source", name)


def test_names_are_bounded_in_bytes() -> None:
    Quotas(name_bytes=4).check_name("a source", "éé")
    with pytest.raises(QuotaError, match="the name of a source has more than 4 bytes"):
        Quotas(name_bytes=4).check_name("a source", "éée")
