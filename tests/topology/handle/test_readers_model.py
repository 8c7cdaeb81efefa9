"""Readers of a queue against a list: whatever they do, rows come in order, and none is lost or comes twice for nothing.

The model is a list of all rows, the last that was acknowledged, and for each reader the number that it gets next.
"""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from topology import AcknowledgedError, Batch, Emit, InputError, SinkHasReaderError, TakenOverError
from topology.handle import spilling_results
from topology.handle.results import Results, numbered_results, plain_results
from topology.handle.results_queue import ResultsQueue
from topology.handle.spilling_results import SpillingResults
from topology.tasks.metrics import TaskCounters

CAPACITY = 200


class Readers(RuleBasedStateMachine):
    """One queue, its reader, the readers that were replaced, and the model of all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = self.make_queue()
        self.made = 0
        self.acknowledged = -1
        self.given = 0
        self.ended = False
        self.reader: Results[Any] | None = None
        self.is_plain = True
        self.numbered = False
        self.position = 0
        self.in_hand = -1  # the last number of a plain reader's batch
        self.replaced: list[Results[Any]] = []

    def make_queue(self) -> ResultsQueue:
        return ResultsQueue(CAPACITY)

    @precondition(lambda self: not self.ended)
    @rule(rows=st.integers(0, 9))
    def push(self, rows: int) -> None:
        if self.queue.has_room:
            batch = pa.record_batch({"n": pa.array(range(self.made, self.made + rows), pa.int64())})
            self.queue.push(TaskCounters(), Emit(Batch("default", batch)))
            self.made += rows

    @rule()
    def end(self) -> None:
        self.queue.end()
        self.ended = True

    @rule(numbered=st.booleans(), ahead=st.none() | st.integers(-3, 12), take_over=st.booleans())
    def read(self, numbered: bool, ahead: int | None, take_over: bool) -> None:
        after = None if ahead is None else max(-1, self.acknowledged + ahead)
        if after is not None and after < self.acknowledged:
            with pytest.raises(AcknowledgedError, match=f"the first that is kept is {self.acknowledged + 1}:"):
                self.queue.read(after, take_over)
        elif after is not None and after > self.acknowledged and after >= self.given:
            with pytest.raises(InputError, match="nobody can have read"):
                self.queue.read(after, take_over)
        elif self.reader is not None and not take_over:
            with pytest.raises(SinkHasReaderError):
                self.queue.read(after)
        else:
            if self.reader is not None:
                self.replaced.append(self.reader)
            reading = self.queue.read(after, take_over)
            self.is_plain = not numbered and after is None
            self.reader = (
                numbered_results(reading, 0) if numbered else plain_results(reading, 0, acknowledges=self.is_plain)
            )
            self.numbered = numbered
            self.position = self.acknowledged + 1 if after is None else after + 1
            self.in_hand = -1

    @precondition(lambda self: self.reader is not None)
    @rule()
    def go_on(self) -> None:
        assert self.reader is not None
        if self.is_plain:
            self.acknowledged = max(self.acknowledged, self.in_hand)
        self.position = max(self.position, self.acknowledged + 1)
        found = next(self.reader, None)
        if found is None:
            assert self.queue.nbytes == 0 or self.has_nothing_to_give(), "rows were kept back"
            self.reader = None
            return
        first, batch = found if self.numbered else (self.position, found)
        assert first == self.position
        assert batch.column("n").to_pylist() == list(range(first, first + batch.num_rows))
        self.position += batch.num_rows
        self.in_hand = self.position - 1
        self.given = max(self.given, self.position)

    def has_nothing_to_give(self) -> bool:
        return self.position == self.made

    @precondition(lambda self: self.reader is not None)
    @rule()
    def leave(self) -> None:
        assert self.reader is not None
        self.reader.close()
        self.reader = None

    @rule(ahead=st.integers(-3, 12))
    def acknowledge(self, ahead: int) -> None:
        number = max(0, self.acknowledged + ahead)
        if number >= self.given:
            with pytest.raises(InputError, match="has not been given to a reader"):
                self.queue.acknowledge(number)
        else:
            self.queue.acknowledge(number)
            self.acknowledged = max(self.acknowledged, number)

    @rule()
    def a_replaced_reader_goes_on(self) -> None:
        for reader in self.replaced:
            with pytest.raises(TakenOverError):
                next(reader)
        self.replaced = []

    @invariant()
    def kept_rows_are_bounded(self) -> None:
        assert self.queue._kept.nbytes <= 3 * CAPACITY

    def teardown(self) -> None:
        """Read the rest: all that was not acknowledged comes once, in order."""
        self.queue.end()
        rest = plain_results(self.queue.read(take_over=True), 0, acknowledges=True)
        found = [number for batch in rest for number in batch.column("n").to_pylist()]
        assert found == list(range(self.acknowledged + 1, self.made))
        assert list(plain_results(self.queue.read(), 0, acknowledges=True)) == []
        assert self.queue._kept.nbytes == 0


class SpillingReaders(Readers):
    """The same for a queue that always has room, in pieces of a few batches."""

    def make_queue(self) -> ResultsQueue:
        return SpillingResults(CAPACITY)

    def has_nothing_to_give(self) -> bool:
        return self.position == self.made or self.position == self.queue._kept.end  # the rest waits for acknowledgement

    @invariant()
    def kept_rows_are_bounded(self) -> None:
        assert self.queue._kept.nbytes <= 2 * CAPACITY + 200


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spilling_results, "PIECE_BYTES", 100)


TestReaders = Readers.TestCase
TestSpillingReaders = SpillingReaders.TestCase
