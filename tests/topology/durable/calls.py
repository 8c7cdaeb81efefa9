"""Any sequence of calls on a log, with what it must hold after each."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.topology.durable.stores import numbered, numbers, started
from topology.durable.record import Position
from topology.durable.store import Store
from topology.durable.take_over import take_over

CALLS = st.lists(
    st.tuples(st.sampled_from(["append", "append", "commit", "rotate", "again", "trim"]), st.integers(0, 3)),
    max_size=25,
)
"""Calls and their arguments: rows to append, or segments to keep before the last one."""


def make_calls(store: Store, calls: list[tuple[str, int]]) -> None:
    """Make calls on the log of a store, which is empty; a new writer takes over again and again."""
    log = started(store)
    committed: dict[Position, int] = {}
    appended: dict[Position, int] = {}
    for number, (call, argument) in enumerate(calls):
        if call == "append":
            appended[log.append(numbered(number, argument))] = number
        elif call == "rotate":
            log.rotate(numbered(-1))
        elif call == "commit":
            log.commit()
            committed, appended = committed | appended, {}
        elif call == "again":
            log, appended = started(store), {}
        elif log.durable is not None:
            first = max(1, log.durable.segment - argument)
            log.trim(first)
            committed = {position: number for position, number in committed.items() if position.segment >= first}
        assert numbers(log) == list(committed.values())
    assert numbers(take_over(store)) == list(committed.values())
