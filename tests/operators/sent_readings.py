"""Readings of two streams in several sources, a join of them, and threads that send them at random."""

from __future__ import annotations

import io
import random
import threading

import numpy as np
import pyarrow as pa

from operators import CountWindow, Engine, RunningJoin, StreamJoin, TimeWindow
from topology import LocalRuntime

ROWS = 3000


def readings(seed: int) -> pa.Table:
    """Few distinct values, many ties, in the keys and in time."""
    rng = np.random.default_rng(seed)
    power = rng.integers(0, 300, ROWS)
    return pa.table(
        {
            "id": np.arange(ROWS),
            "power": power,
            "cool": power + rng.normal(0, 3, ROWS).round(1),
            "ts": np.sort(rng.integers(0, ROWS // 4, ROWS)),
            "name": [f"rack {number % 17}" if number % 13 else None for number in range(ROWS)],
        }
    )


TABLES = {"R": readings(1), "S": readings(2)}
SOURCES = {
    stream: {f"{stream}-{k}": table.take(pa.array(range(k, ROWS, 3))) for k in range(3)}
    for stream, table in TABLES.items()
}
WINDOWS = [CountWindow(700, 100), (TimeWindow(150, 20), CountWindow(333))]


def join_with(window: object, engine: Engine, step_rows: int) -> StreamJoin:
    return StreamJoin(
        "R",
        "S",
        "R.power < S.power AND R.cool > S.cool",
        window,  # type: ignore[arg-type]
        event_time="ts",
        using=engine,
        step_rows=step_rows,
    )


def content(table: pa.Table) -> bytes:
    """The table as bytes that do not depend on how it was cut into chunks."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return sink.getvalue()


def results_of_senders(join: StreamJoin, seed: int) -> pa.Table:
    """The results when each source is sent by a thread of its own, in pieces that `seed` decides."""
    names = {stream: list(tables) for stream, tables in SOURCES.items()}
    with join.launch(LocalRuntime(), sources=names) as running:
        threads = [
            threading.Thread(target=send, args=(running, stream, name, table, random.Random(f"{seed}{name}")))
            for stream, tables in SOURCES.items()
            for name, table in tables.items()
        ]
        for thread in threads:
            thread.start()
        finisher = threading.Thread(target=finish_after, args=(threads, running))
        finisher.start()
        result = pa.Table.from_batches(list(running.results()), running.result_schema())
        finisher.join()
    return result


def finish_after(threads: list[threading.Thread], running: RunningJoin) -> None:
    for thread in threads:
        thread.join()
    running.finish()


def send(running: RunningJoin, stream: str, name: str, table: pa.Table, chance: random.Random) -> None:
    at = 0
    while at < table.num_rows:
        count = chance.choice([1, 7, 100, 400])
        running.send(stream, table.slice(at, count), name)
        at += count
