"""Idle sources on the embedded runtime: progress ignores them until their next rows."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pyarrow as pa

from tests.operators.intake.idle_course import IDLE, check_idle_course, rows, send_here, send_over_flight
from topology import LocalRuntime


def test_progress_ignores_a_silent_source_which_is_late_when_it_returns() -> None:
    check_idle_course(LocalRuntime(), send_here)


def test_rows_of_other_processes_count_as_well() -> None:
    check_idle_course(LocalRuntime(), send_over_flight)


def test_without_idle_after_a_silent_source_is_waited_for() -> None:
    with replace(IDLE, idle_after=None).launch(sources={"R": ["R"], "S": ["S"]}) as running:
        running.send("S", rows(1))
        running.send("R", rows(2, 50))
        assert list(running.results(timeout=1.0)) == []


def test_a_stream_without_sources_is_not_waited_for() -> None:
    with IDLE.launch() as running:
        running.send("R", rows(1, 2))
        limit = time.monotonic() + 60
        while running.metrics().total("merged") < 2 and time.monotonic() < limit:
            time.sleep(0.02)
        assert running.metrics().total("merged") == 2


def test_back_pressure_is_no_silence() -> None:
    many = pa.table({"id": pa.array([0] * 20_000, pa.int64()), "ts": pa.array(range(20_000), pa.int64())})
    with IDLE.launch(LocalRuntime(edge_bytes=2_000), sources={"R": ["R"], "S": ["S"]}) as running:

        def feed() -> None:
            for at in range(0, 20_000, 200):
                running.send("R", many.slice(at, 200))
                running.send("S", many.slice(at, 200))
            running.finish()

        feeder = threading.Thread(target=feed)
        feeder.start()
        time.sleep(1.5)  # without a reader, back-pressure blocks the feeder for far longer than idle_after
        assert feeder.is_alive()
        for _ in running.results():
            pass
        feeder.join(60)
        assert running.metrics().total("late") == 0


def test_the_watch_ends_with_the_topology() -> None:
    with IDLE.launch() as running:
        running.send("R", rows(1))
        assert any(thread.name == "idle sources" for thread in threading.enumerate())
    assert not any(thread.name == "idle sources" for thread in threading.enumerate())
