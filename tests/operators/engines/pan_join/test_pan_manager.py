"""The manager of PanJoin by hand: what it commands, when, and whom."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import Interval, Keys, Live
from operators.engines.pan_join import manager as pan_manager
from operators.engines.pan_join.commands import Create, Expire, Insert, Probe
from operators.engines.pan_join.manager import PanManager, PanManagerTask, SubwindowChain, joined
from operators.protocol.element_rows import ElementRows
from operators.protocol.limits import Limits
from operators.protocol.sides import SIDES
from topology import Batch, Emit, Origin, Punctuation

ROUTER = Origin("router", 0, 0)


def rows_of(first: int, count: int, live: tuple[int, int], kind: type[np.generic] = np.int64) -> ElementRows:
    """Rows first, first + 1, ... that all may meet the same positions of the other side."""
    values: np.ndarray = np.arange(first, first + count).astype(kind)
    return ElementRows(
        first,
        np.arange(first, first + count),
        (Keys(values),),
        (Interval(values, values),),
        Live(np.full(count, live[0]), np.full(count, live[1])),
    )


class Driven:
    """A manager, what it has sent in order, and how far each side has come."""

    def __init__(self, description: PanManager) -> None:
        self.task = PanManagerTask(description)
        self.seq = 0

    def step(self, left: ElementRows | None, right: ElementRows | None, live: tuple[int, int]) -> list[str]:
        sent = list(self.task.on_batch(Limits(live=live).to_batch(), ROUTER))
        for side, rows in enumerate((left, right)):
            if rows is not None:
                batch = Batch(f"probes.{SIDES[side]}", rows.to_arrow(), first=rows.first)
                sent += self.task.on_batch(batch, ROUTER)
        self.seq += 1
        sent += self.task.on_punctuation(Punctuation(self.seq), ROUTER)
        self.task.check_invariants()
        return said(sent)


def said(emits: Iterable[Emit]) -> list[str]:
    return [_said(emit) for emit in emits]


def _said(emit: Emit) -> str:
    message = emit.message
    if isinstance(message, Punctuation):
        return f"punctuation {message.seq}"
    assert isinstance(message, Batch)
    match message.stream:
        case "create":
            create = Create.from_batch(message)
            return f"{emit.to}: create {SIDES[create.side]} {create.number} at {create.first}"
        case "insert":
            insert = Insert.from_batch(message)
            return f"{emit.to}: insert {SIDES[insert.side]} {insert.number} {insert.first}+{len(insert.keys[0])}"
        case "probe":
            probe = Probe.from_batch(message, (False,))
            return f"{emit.to}: probe {SIDES[probe.side]} {probe.rows.first}+{len(probe.rows)}"
        case "expire":
            expire = Expire.from_batch(message)
            return f"{emit.to}: expire {SIDES[expire.side]} {expire.number}"
    raise AssertionError(message.stream)


def test_the_commands_of_a_batch() -> None:
    manager = Driven(PanManager((False,), workers=2, subwindows=(4, 4)))
    assert manager.step(rows_of(0, 6, (0, 0)), None, (0, 0)) == [
        "0: create left 0 at 0",
        "0: insert left 0 0+4",
        "1: create left 1 at 4",
        "1: insert left 1 4+2",
        "punctuation 1",
    ]
    # rows 0..2 of the left are dead: nothing to expire; only the worker with live rows is asked
    assert manager.step(None, rows_of(0, 2, (4, 6)), (4, 0)) == [
        "0: create right 0 at 0",
        "0: insert right 0 0+2",
        "1: probe right 0+2",
        "punctuation 2",
        "0: expire left 0",
    ]
    assert manager.step(rows_of(6, 3, (0, 2)), rows_of(2, 1, (5, 9)), (5, 0)) == [
        "1: insert left 1 6+2",
        "0: create left 2 at 8",
        "0: insert left 2 8+1",
        "0: insert right 0 2+1",
        "0: probe left 6+3",
        "0: probe right 2+1",
        "1: probe right 2+1",
        "punctuation 3",
    ]


def test_a_batch_is_closed_by_its_rows_or_when_nothing_more_waits() -> None:
    manager = Driven(PanManager((False,), workers=1, subwindows=(100, 100), batch_rows=5))
    assert manager.step(rows_of(0, 3, (0, 0)), None, (0, 0)) == []
    assert manager.step(rows_of(3, 2, (0, 0)), rows_of(0, 1, (0, 5)), (0, 0)) == [
        "0: create left 0 at 0",
        "0: insert left 0 0+5",
        "0: create right 0 at 0",
        "0: insert right 0 0+1",
        "0: probe right 0+1",
        "punctuation 2",
    ]
    assert said(manager.task.on_idle()) == []
    assert manager.step(rows_of(5, 1, (0, 1)), None, (0, 0)) == []
    assert said(manager.task.on_idle()) == ["0: insert left 0 5+1", "0: probe left 5+1", "punctuation 3"]
    assert manager.step(rows_of(6, 1, (0, 1)), None, (0, 0)) == []
    assert said(manager.task.on_end()) == ["0: insert left 0 6+1", "0: probe left 6+1", "punctuation 4"]


def test_commands_are_the_same_after_travelling_as_arrow() -> None:
    keys = (Keys(np.array([3, 1]), np.array([True, False])), Keys(np.array([0.5, 1.5])))
    packed = Insert(1, 7, 40, keys).to_batch()
    insert = Insert.from_batch(_travelled(packed))
    assert (insert.side, insert.number, insert.first) == (1, 7, 40)
    assert insert.keys[0].valid is not None
    assert insert.keys[0].valid.tolist() == [True, False]
    assert insert.keys[1].values.tolist() == [0.5, 1.5]
    probe = Probe.from_batch(_travelled(Probe(0, rows_of(5, 3, (1, 4))).to_batch()), (True,))
    assert (probe.side, probe.rows.first, len(probe.rows)) == (0, 5, 3)
    assert probe.rows.intervals[0].negated
    assert probe.rows.intervals[0].low.tolist() == probe.rows.seq.tolist() == [5, 6, 7]
    for command in (Create(1, 2, 30, 10), Expire(0, 4)):
        assert type(command).from_batch(_travelled(command.to_batch())) == command


def _travelled(batch: Batch) -> Batch:
    """Without the memo, its columns copied."""
    rows = pa.ipc.read_record_batch(batch.rows.serialize(), batch.rows.schema)
    return Batch(batch.stream, rows, first=batch.first, labels=batch.labels)


def test_rows_from_before_the_other_sides_type_was_known_are_joined_too() -> None:
    early, late = rows_of(0, 2, (0, 0)), rows_of(2, 2, (0, 1), np.float64)
    early = ElementRows(0, early.seq, late.keys, early.intervals, early.live)
    both = joined([early, late])
    assert both.intervals[0].low.dtype == np.float64
    assert both.seq.tolist() == [0, 1, 2, 3]
    assert both.live.end.tolist() == [0, 0, 1, 1]


@given(
    st.integers(1, 6),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 25)), max_size=30),
)
def test_every_live_row_is_in_one_subwindow(room: int, workers: int, steps: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pan_manager, "MOST_SUBWINDOWS", 2)
        chain = SubwindowChain(room, workers)
        at: dict[int, tuple[int, int]] = {}
        arrived = dead = 0
        for rows, dying in steps:
            for link, first, end, new in chain.place(arrived, rows):
                assert not new or first == link.first
                assert link.first % (link.end - link.first) == 0
                at |= dict.fromkeys(range(first, end), (link.number, link.worker))
            arrived += rows
            assert sorted(at) == list(range(min(at, default=arrived), arrived))
            expected = {worker for position, (_, worker) in at.items() if position >= dead}
            assert expected <= set(chain.holders(dead, arrived))
            dead = min(arrived, dead + dying)
            for link in chain.expire(dead):
                at = {position: place for position, place in at.items() if place[0] != link.number}
                assert link.end <= dead
            chain.check_invariants()
            assert all(position in at for position in range(dead, arrived))


def test_subwindows_get_more_room_where_a_window_holds_more_than_was_thought() -> None:
    chain = SubwindowChain(10, workers=2)
    for _ in chain.place(0, 100_000):
        pass
    assert len(chain) < 300
