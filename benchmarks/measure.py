"""Measures a join from batch in to result batch out, with its windows already full."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators import RunningJoin, StreamJoin
from topology import LocalRuntime, Runtime


@dataclass(frozen=True)
class Measured:
    """The figures of a run: tuples of both sides per second, and the results of the measured part in order.

    processor: processor time of all threads of this process, in seconds; it stays meaningful when other programs use
               the machine.
    """

    rate: float
    seconds: float
    results: pa.Table
    latency: tuple[float, float]
    processor: float = 0.0


def in_blocks(table: pa.Table, batch: int, parity: int) -> pa.Table:
    """Give every `batch` rows one event time, so that micro-batches of R and S take turns."""
    blocks = pa.array(2 * (np.arange(table.num_rows) // batch) + parity)
    return table.append_column("block", blocks).combine_chunks()


def run_join(
    join: StreamJoin, tables: tuple[pa.Table, pa.Table], batch: int, prefill: int, runtime: Runtime | None = None
) -> Measured:
    """Send R and S in alternating micro-batches; measure from the first one after `prefill` rows of each side."""
    left, right = (in_blocks(table, batch, parity).to_batches()[0] for parity, table in enumerate(tables))
    total = left.num_rows
    with join.launch(runtime or LocalRuntime(), sources={"R": ["R"], "S": ["S"]}) as running:
        reader = _Reader(running, join.engine.collector)
        reader.start()
        _send(running, left, right, batch, 0, prefill)
        reader.wait_for(2 * prefill - batch)  # the last micro-batch passes the gate when the next one comes
        start, worked = time.perf_counter(), time.process_time()
        _send(running, left, right, batch, prefill, total)
        running.finish()
        reader.join()
        seconds, processor = time.perf_counter() - start, time.process_time() - worked
        p50, p99 = running.metrics().latency(50, 99)
    return Measured(2 * (total - prefill) / seconds, seconds, reader.since(prefill), (p50, p99), processor)


def _send(running: RunningJoin, left: pa.RecordBatch, right: pa.RecordBatch, batch: int, start: int, stop: int) -> None:
    for at in range(start, stop, batch):
        count = min(batch, stop - at)
        running.send("R", left.slice(at, count))
        running.send("S", right.slice(at, count))


class _Reader(threading.Thread):
    """Reads results as they come, as a user would, and keeps them."""

    def __init__(self, running: RunningJoin, collector: str) -> None:
        super().__init__(name="reader", daemon=True)
        self._running = running
        self._collector = collector
        self._batches: list[pa.RecordBatch] = []

    def run(self) -> None:
        for batch in self._running.results():
            self._batches.append(batch)

    def wait_for(self, rows: int) -> None:
        """Wait until the results of this many rows have been read."""
        while True:
            metrics = self._running.metrics()
            if metrics.total("answered", self._collector) >= rows:
                sent = metrics.total("results", self._collector)
                if sum(batch.num_rows for batch in self._batches) >= sent:
                    return
            time.sleep(0.01)

    def since(self, prefill: int) -> pa.Table:
        """The results whose later row came after the prefill; ids are positions."""
        table = pa.Table.from_batches(self._batches, self._running.result_schema())
        later = pc.max_element_wise(table.column(0), table.column(1))
        return table.filter(pc.greater_equal(later, prefill))
