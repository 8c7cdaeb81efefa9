"""Stopping and Ctrl-C release everyone who waits and leave nothing running."""

import logging
import signal
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.topology.local.pipelines import numbers, pipeline, read, send_each
from tests.topology.waiting import LONG, SHORT, done_within, wait_for
from topology import Batch, Bolt, Emit, Input, LocalRuntime, Origin, StoppedError, Task, TaskContext
from topology.process import task_group


def test_stopping_releases_senders_and_readers() -> None:
    running = LocalRuntime(edge_bytes=500).launch(pipeline())
    with ThreadPoolExecutor(2) as pool:
        sending = pool.submit(send_each, running, range(1_000))
        assert not done_within(sending.done, SHORT)
        running.stop()
        assert isinstance(sending.exception(LONG), StoppedError)
    quiet = LocalRuntime().launch(pipeline())
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read, quiet)
        assert not done_within(reading.done, SHORT)
        quiet.stop()
        assert isinstance(reading.exception(LONG), StoppedError)


class Stubborn(Bolt):
    release = threading.Event()

    def build(self, context: TaskContext) -> Task:
        return StubbornTask()


class StubbornTask(Task):
    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        Stubborn.release.wait(LONG)
        return ()


def test_a_task_that_does_not_return_is_named_and_does_not_hold_up_stop(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(task_group, "JOIN_SECONDS", SHORT)
    Stubborn.release.clear()
    running = LocalRuntime().launch(pipeline(Stubborn()))
    running.send("in", numbers(1))
    wait_for(lambda: running.metrics().of("bolt")[0].rows_in == 1)
    with caplog.at_level(logging.WARNING):
        running.stop()
    assert "bolt[0] is still busy" in caplog.text
    Stubborn.release.set()
    wait_for(lambda: not any(thread.name.startswith("interlace-") for thread in threading.enumerate()))


def test_an_interrupted_reader_leaves_nothing_running() -> None:
    with pytest.raises(KeyboardInterrupt), LocalRuntime().launch(pipeline()) as running:
        looks = iter(range(20))
        interrupt_when(lambda: next(looks, None) is None)  # a moment later, when the main thread waits
        list(running.results())


def test_an_interrupted_send_can_be_repeated_without_gap_or_double() -> None:
    with LocalRuntime(edge_bytes=500).launch(pipeline(source=Input(event_time="n"))) as running:
        sent = 0
        interrupt_when(Stuck(running))
        with pytest.raises(KeyboardInterrupt):
            while True:
                running.send("in", numbers(sent))
                sent += 1
        with ThreadPoolExecutor(1) as pool:
            pool.submit(send_each, running, [sent], finish=True)
            assert read(running) == [2 * value for value in range(sent + 1)]


class Stuck:
    """Holds when all queues are full, so that the sender waits for a reader: nothing has moved for many looks."""

    def __init__(self, running: Any) -> None:
        self._results = running._group.results["results"]
        self._inbox = running._group.tasks["in", 0].inbox
        self._running = running
        self._moved = -1
        self._looks = 0

    def __call__(self) -> bool:
        moved = self._running.metrics().of("results")[0].rows_in
        still = moved == self._moved and self._inbox._waiting_senders and not self._results.has_room
        self._looks = self._looks + 1 if still else 0
        self._moved = moved
        return self._looks >= 20


def interrupt_when(condition: Callable[[], bool]) -> None:
    """Press Ctrl-C, from a thread, as soon as the condition holds."""
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        wait_for(condition)
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
