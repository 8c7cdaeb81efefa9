"""Idle sources, by a clock that the test moves."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.topology.waiting import wait_for
from topology import Batch, End, Idle, Input, Watermark
from topology.entry.idle_watch import EntryClock
from topology.entry.ingest import Ingest


class Hand:
    """The hand of a clock."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def entry(idle_after: float = 5.0) -> tuple[Ingest, Hand, list[Any]]:
    """An entry without a watching thread: time passes only when the test moves the clock."""
    hand = Hand()
    ingest = Ingest(clock=EntryClock(hand))
    taken: list[Any] = []
    ingest.add("R", Input(idle_after=idle_after), taken.append)
    return ingest, hand, taken


def rows(count: int = 1) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(range(count), pa.int64())})


def after(ingest: Ingest, hand: Hand, taken: list[Any], seconds: float) -> list[str]:
    """Let the clock run for `seconds`; return the sources that are then reported as idle."""
    hand.now += seconds
    before = len(taken)
    ingest.report_idle()
    assert all(isinstance(message, Idle) for message in taken[before:])
    return [message.source for message in taken[before:]]


def test_a_source_is_idle_once_after_its_last_rows_and_again_after_it_sent_again() -> None:
    ingest, hand, taken = entry()
    ingest.open("R", "a")
    ingest.send("R", "b", rows())
    assert after(ingest, hand, taken, 4.9) == []
    ingest.send("R", "b", rows())
    assert after(ingest, hand, taken, 0.1) == ["a"]
    assert after(ingest, hand, taken, 4.0) == []
    assert after(ingest, hand, taken, 1.0) == ["b"]
    assert after(ingest, hand, taken, 50.0) == []
    ingest.send("R", "a", rows())
    assert after(ingest, hand, taken, 5.0) == ["a"]


def test_a_source_that_is_announced_again_is_not_idle() -> None:
    ingest, hand, taken = entry()
    for _ in range(3):
        ingest.open("R", "a")
        assert after(ingest, hand, taken, 4.0) == []
    assert after(ingest, hand, taken, 1.0) == ["a"]
    ingest.finish("R", "a")
    ingest.open("R", "a")
    before = len(taken)
    ingest.report_idle()
    assert len(taken) == before


def test_a_stream_without_a_source_is_idle_too_until_it_has_one() -> None:
    ingest, hand, taken = entry()
    assert after(ingest, hand, taken, 5.0) == [""]
    assert after(ingest, hand, taken, 50.0) == []
    other, other_hand, other_taken = entry()
    other.open("R", "a")
    assert after(other, other_hand, other_taken, 5.0) == ["a"]


def test_what_has_ended_is_not_idle() -> None:
    ingest, hand, taken = entry()
    ingest.open("R", "a")
    ingest.send("R", "b", rows())
    ingest.finish("R", "a")
    assert after(ingest, hand, taken, 5.0) == ["b"]
    ingest.finish("R")
    assert taken[-1] == End()
    assert after(ingest, hand, taken, 50.0) == []
    unused, unused_hand, unused_taken = entry()
    unused.finish("R")
    assert after(unused, unused_hand, unused_taken, 50.0) == []


def test_rows_that_are_staged_are_a_sign_of_life_and_committed_ones_are_never_idle() -> None:
    ingest, hand, taken = entry()
    ingest.open("R", "p")
    assert after(ingest, hand, taken, 4.0) == []
    ingest.stage("R", "p", "1", rows(3))
    assert after(ingest, hand, taken, 4.0) == []
    ingest.commit("R", "p", "1", 3)
    hand.now += 100.0
    ingest.report_idle()
    ingest.finish("R")
    wait_for(lambda: End() in taken)  # a thread delivers committed rows
    assert [message for message in taken if isinstance(message, Idle)] == []
    assert [type(message) for message in taken if isinstance(message, Watermark | Batch)] == [Watermark, Batch]
    ingest._watcher = None
    ingest.close()


def test_the_clock_stands_still_while_rows_wait_and_none_are_taken() -> None:
    hand = Hand()
    clock = EntryClock(hand)
    began = clock.seconds()
    with clock.sending():
        hand.now += 60.0
        assert clock.seconds() == began
    assert clock.seconds() == began
    hand.now += 3.0
    assert clock.seconds() == began + 3.0


def test_senders_that_are_always_busy_do_not_stop_the_clock() -> None:
    hand = Hand()
    clock = EntryClock(hand)
    began = clock.seconds()
    with clock.sending():
        for _ in range(1000):  # a sender is always busy, but rows are taken all the time
            with clock.sending():
                hand.now += 0.05
    assert abs(clock.seconds() - began - 50.0) < 0.001


def test_idleness_does_not_overtake_rows_that_are_on_their_way() -> None:
    ingest, hand, taken = entry()
    ingest.open("R", "a")
    hand.now += 10.0
    with ingest._streams["R"].order:  # while rows are being sent
        ingest.report_idle()
    assert [message for message in taken if isinstance(message, Idle)] == []
    ingest.send("R", "a", rows())
    assert after(ingest, hand, taken, 1.0) == []


def test_a_source_is_not_idle_because_the_topology_takes_no_rows() -> None:
    """Otherwise the rows that its sender holds would be late."""
    ingest, hand, taken = entry()
    ingest.send("R", "a", rows())
    assert after(ingest, hand, taken, 3.0) == []
    ingest.set_active(False)
    assert after(ingest, hand, taken, 60.0) == []
    ingest.set_active(True)
    assert after(ingest, hand, taken, 1.9) == []
    assert after(ingest, hand, taken, 0.2) == ["a"]
