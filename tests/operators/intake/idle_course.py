"""A source that falls silent and comes back, on any runtime; its rows may come from another process."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa

from operators import CountWindow, RunningJoin, StreamJoin
from tests.operators.intake.out_of_order import reported
from topology import FlightClient, Runtime

Send = Callable[[RunningJoin, str, pa.Table], None]
IDLE = StreamJoin("R", "S", "R.id <= S.id", CountWindow(10), select=["R.id", "S.id"], event_time="ts", idle_after=0.3)


def rows(*times: int) -> pa.Table:
    return pa.table({"id": pa.array(range(len(times)), pa.int64()), "ts": pa.array(times, pa.int64())})


def send_here(running: RunningJoin, stream: str, table: pa.Table) -> None:
    running.send(stream, table)


def send_over_flight(running: RunningJoin, stream: str, table: pa.Table) -> None:
    running.pin(stream, table.schema)
    with FlightClient(running.endpoint(stream)) as client:
        client.send(stream, stream, table)


def check_idle_course(runtime: Runtime, send: Send) -> None:
    """S stops sending: R's rows pass without it. It comes back with one row too early, one in time."""
    with IDLE.launch(runtime, sources={"R": ["R"], "S": ["S"]}) as running:
        send(running, "S", rows(1))
        send(running, "R", rows(2, 50))
        # the pair of R's first row and S's needs S to be idle: S has promised nothing beyond 1
        first = next(running.results(timeout=60))
        assert first.num_rows >= 1
        wait_for_both(running)
        send(running, "S", rows(40, 60))
        running.finish()
        list(running.results())
        late = pa.Table.from_batches(running.late(), running.late_schema())
    assert reported(late) == {("S", "S"): [(1, 40, "source was idle")]}


def wait_for_both(running: RunningJoin) -> None:
    """Until all three rows have been put in order."""
    limit = time.monotonic() + 60
    while running.metrics().total("merged") < 3 and time.monotonic() < limit:
        time.sleep(0.05)
    assert running.metrics().total("merged") == 3
