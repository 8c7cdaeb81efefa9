"""A sequencer changes the order of messages within a step, and makes no row late by that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from topology.graph.components import Emit, Origin
from topology.graph.messages import Batch, End, Idle, Message, Watermark
from topology.steps.sequencer import SequencerTask, as_sent
from topology.tasks.merged_watermark import MergedWatermark

INPUT = Origin("in", 0, 0, lag=0)
SOURCES = "abc"


@dataclass
class Late:
    """Counts the rows that come behind the watermark of a task."""

    rows: int = 0

    def __post_init__(self) -> None:
        self.merged = MergedWatermark([INPUT])

    def take(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if isinstance(message, Batch) and self.merged.time is not None:
                self.rows += sum(time < self.merged.time for time in message.rows["t"].to_pylist())
            self.merged.take(0, message)


class Arrivals:
    """What comes to a sequencer of one input, and the numbers and times that it has."""

    def __init__(self) -> None:
        self.late, self.late_in_steps = Late(), Late()
        self.sequencer = SequencerTask({"in": "t"})
        self._sent = dict.fromkeys(SOURCES, 0)
        self._time = dict.fromkeys(SOURCES, 0)

    def take(self, source: str, what: str, forward: int) -> None:
        if what == "step":
            self._step()
            return
        message: Message
        match what:
            case "rows":
                times = [self._time[source], self._time[source] + forward]
                message = Batch("", pa.record_batch({"t": times}), self._sent[source], source, (times[0], times[1]))
                self._sent[source] += 2
                self._time[source] += forward
                self._emitted(self.sequencer.on_batch(message, INPUT))
            case "opens":
                message = Watermark(None, "", source)
                self._emitted(self.sequencer.on_watermark(message, INPUT))
            case _:
                message = Idle("", source)
                self._emitted(self.sequencer.on_source_idle(message, INPUT))
        self.late.take([message])

    def end(self) -> None:
        for source in SOURCES:
            self._emitted(self.sequencer.on_source_end(End("", source), INPUT))
            self.late.take([End("", source)])
        self._step()

    def _step(self) -> None:
        self._emitted(self.sequencer.on_idle())

    def _emitted(self, emits: Iterable[Emit]) -> None:
        messages = [each.message for each in emits]
        self.late_in_steps.take(as_sent(each) for each in messages if isinstance(each, Batch | Watermark | Idle | End))
        self.sequencer.check_invariants()


KINDS = ["rows", "rows", "opens", "idle", "step"]
moves = st.tuples(st.sampled_from(SOURCES), st.sampled_from(KINDS), st.integers(0, 9))


@given(st.lists(moves, max_size=30))
def test_no_row_is_late_because_of_a_step(moves: list[tuple[str, str, int]]) -> None:
    arrivals = Arrivals()
    for move in moves:
        arrivals.take(*move)
    arrivals.end()
    assert arrivals.late_in_steps.rows <= arrivals.late.rows


def test_sources_that_open_in_a_step_open_before_its_rows() -> None:
    arrivals = Arrivals()
    for source in SOURCES:
        arrivals.take(source, "opens", 0)
    arrivals.take("b", "rows", 90)
    arrivals.take("", "step", 0)
    arrivals.take("a", "rows", 50)
    arrivals.end()
    assert arrivals.late_in_steps.rows == 0


def test_a_source_that_is_active_again_is_not_taken_for_silent() -> None:
    arrivals = Arrivals()
    for source in SOURCES:
        arrivals.take(source, "rows", 0)
    arrivals.take("a", "idle", 0)
    arrivals.take("a", "rows", 0)
    arrivals.take("", "step", 0)
    for source in "bc":
        arrivals.take(source, "rows", 90)
        arrivals.take("", "step", 0)
    arrivals.take("a", "rows", 5)
    arrivals.end()
    assert arrivals.late_in_steps.rows == arrivals.late.rows == 0
