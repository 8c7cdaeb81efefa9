"""A log on an S3 server keeps the same promises."""

from __future__ import annotations

from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.s3_server import below
from tests.topology.durable.calls import CALLS, make_calls
from tests.topology.durable.stores import numbered, numbers, started
from tests.topology.durable.writers import History
from topology.durable.open_store import open_store
from topology.durable.record import Position
from topology.durable.take_over import take_over
from topology.graph.errors import DamagedLogError, FencedError


def test_a_log_is_written_read_trimmed_and_fenced(s3_uri: str) -> None:
    uri = below(s3_uri, "whole")
    first = started(open_store(uri))
    for number in range(4):
        first.append(numbered(number, rows=10))
        if number == 1:
            first.rotate(numbered(-1))
        first.commit()
    assert first.durable == Position(2, 2)
    first.trim(2)
    second = started(open_store(uri))
    assert numbers(second) == [2, 3]
    first.append(numbered(9))
    with pytest.raises(FencedError):
        first.commit()
    second.append(numbered(4))
    second.commit()
    third = take_over(open_store(uri))
    assert third.segments == [2, 3]
    assert numbers(third) == [2, 3, 4]


def test_an_object_that_is_missing_is_damage(s3_uri: str) -> None:
    store = open_store(below(s3_uri, "missing-object"))
    log = started(store)
    for number in range(4):
        log.append(numbered(number))
        log.commit()
    segment = store.segments()[0]
    store._files.delete_file(f"bucket/missing-object/segments/{segment}/{2:012}")  # type: ignore[attr-defined]
    with pytest.raises(DamagedLogError, match=rf"{segment} is damaged at byte [\d,]+ \(group 2\)"):
        take_over(store)


@settings(max_examples=10)
@given(CALLS)
def test_any_sequence_of_calls_keeps_what_was_committed(s3_uri: str, calls: list[tuple[str, int]]) -> None:
    make_calls(open_store(below(s3_uri, uuid4().hex)), calls)


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_several_writers_in_any_order(s3_uri: str, seed: int) -> None:
    uri = below(s3_uri, uuid4().hex)
    history = History(lambda: open_store(uri))
    history.race(seed)
    history.check()
