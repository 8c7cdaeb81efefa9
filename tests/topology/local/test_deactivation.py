"""Topologies in this process that take no rows for a while: calls wait, and what has been taken goes on."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from operators import CountWindow, ScaleJoin, StreamJoin
from tests.topology.local.pipelines import numbers, pipeline, read
from tests.topology.waiting import LONG, SHORT, wait_for
from topology import (
    DEFAULT_STREAM,
    Batch,
    Emit,
    End,
    LocalRuntime,
    Message,
    RunningTopology,
    SourceEndedError,
    Spout,
    SpoutTask,
    StoppedError,
    TaskContext,
    TopologyBuilder,
    Watermark,
)
from topology.entry.ingest import Ingest

JOIN = StreamJoin("R", "S", "R.x = S.x", CountWindow(100), select=["R.x"], using=ScaleJoin(threads=1))


class Call(threading.Thread):
    """A call in a thread of its own; keeps what it raised."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._call = call
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self._error = error

    @property
    def waits(self) -> bool:
        self.join(SHORT)
        return self.is_alive()

    @property
    def error(self) -> BaseException | None:
        """What it raised, when it has ended."""
        self.join(LONG)
        assert not self.is_alive()
        return self._error


def launched() -> RunningTopology:
    return LocalRuntime().launch(pipeline())


def test_a_call_of_send_waits_until_the_topology_takes_rows_again() -> None:
    with launched() as running:
        running.send("in", numbers(1))
        running.deactivate()
        running.deactivate()
        assert not running.status().active
        assert "running, deactivated" in str(running.status())
        sending = Call(lambda: running.send("in", numbers(2)))
        assert sending.waits
        reading = running.results(timeout=LONG)
        assert next(reading)["n"].to_pylist() == [2]
        assert running.next_offset("in") == 1
        running.activate()
        assert sending.error is None
        assert next(reading)["n"].to_pylist() == [4]
        assert running.status().active


def test_a_stream_that_is_finished_refuses_the_rows_that_waited() -> None:
    with launched() as running:
        running.deactivate()
        sending = Call(lambda: running.send("in", numbers(1)))
        assert sending.waits
        running.drain()
        assert isinstance(sending.error, SourceEndedError)
        assert read(running) == []


def test_stopping_ends_calls_that_wait() -> None:
    running = launched()
    running.deactivate()
    sending = Call(lambda: running.send("in", numbers(1)))
    assert sending.waits
    running.stop()
    assert isinstance(sending.error, StoppedError)
    with pytest.raises(StoppedError):
        running.activate()


def test_committed_rows_wait_and_so_does_the_end_of_their_stream() -> None:
    taken: list[Message] = []
    entry = Ingest()
    entry.add("in", pipeline().require_input("in"), taken.append)
    entry.set_active(False)
    with closing(entry):
        entry.stage("in", "file", "attempt", numbers(1, 2))
        entry.commit("in", "file", "attempt", 2)
        entry.finish("in")
        assert taken == [Watermark(None, DEFAULT_STREAM, "file")]
        entry.set_active(True)
        wait_for(lambda: taken[-1] == End())
        assert [message.rows for message in taken if isinstance(message, Batch)] == [numbers(1, 2)]


@dataclass(frozen=True)
class Counting(Spout):
    """Emits one number after the other, for ever."""

    def build(self, context: TaskContext) -> SpoutTask:
        return CountingTask()


class CountingTask(SpoutTask):
    def batches(self) -> Iterator[Emit]:
        for number in itertools.count():
            yield Emit(Batch("default", numbers(number), number, "numbers"))


def test_a_spout_waits_and_ends_with_the_topology() -> None:
    builder = TopologyBuilder("counting")
    builder.spout("numbers", Counting())
    builder.sink().global_grouping("numbers")
    with LocalRuntime(edge_bytes=1_000).launch(builder.build()) as running:
        assert next(running.results(timeout=LONG)).num_rows
        running.deactivate()
        list(running.results(timeout=2 * SHORT))  # comes to an end
        running.activate()
        assert next(running.results(timeout=LONG)).num_rows
        running.deactivate()


def test_windows_stay_and_a_new_life_takes_no_rows_either(tmp_path: Path) -> None:
    with JOIN.launch(LocalRuntime(state=tmp_path)) as running:
        running.send("R", {"x": [1, 2, 3]})
        running.deactivate()
        sending = Call(lambda: running.send("S", {"x": [2]}))
        running.rebalance(processing_thread=2)
        assert sending.waits
        assert not running.status().active
        running.activate()
        assert sending.error is None
        running.finish()
        assert pa.Table.from_batches(running.results(timeout=LONG)).to_pylist() == [{"R.x": 2}]
