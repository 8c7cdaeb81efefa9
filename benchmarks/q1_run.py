"""Query Q1 on one runtime, fed by a program that keeps count: at full speed, at a set rate, and from a cold start."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.data import datacentre_readings
from operators import CountWindow, RunningJoin, StreamJoin
from topology import Runtime

NOISE = 0.05
Q1 = "R.power < S.power AND R.cool > S.cool"
STREAMS = ("R", "S")


def q1(window: int) -> StreamJoin:
    """The join with default settings: the number of a reading is its event time, so R and S take turns row by row."""
    return StreamJoin(left="R", right="S", on=Q1, window=CountWindow(window, window // 10), select=["R.id", "S.id"])


@contextmanager
def launched(window: int, runtime: Runtime) -> Iterator[RunningJoin]:
    with q1(window).launch(runtime, sources={name: [name] for name in STREAMS}) as running:
        yield running


class Readings:
    """The readings of both centres, made in blocks as they are asked for: the same for every run."""

    BLOCK = 1_000_000

    def __init__(self) -> None:
        self._blocks: dict[int, tuple[pa.RecordBatch, ...]] = {}

    def batches(self, first: int, end: int, batch: int) -> Iterator[tuple[pa.RecordBatch, ...]]:
        """Batches of R and S in turn, readings `first` to before `end` of each; blocks are whole batches."""
        for at in range(first, end, batch):
            block, start = divmod(at, self.BLOCK)
            if block not in self._blocks:
                self._blocks[block] = self._made(block)
            yield tuple(rows.slice(start, min(batch, end - at)) for rows in self._blocks[block])

    def _made(self, block: int) -> tuple[pa.RecordBatch, ...]:
        tables = (datacentre_readings(self.BLOCK, NOISE, 2 * block + seed) for seed in (1, 2))
        ids = pa.array(np.arange(block * self.BLOCK, (block + 1) * self.BLOCK))
        return tuple(table.set_column(0, "id", ids).combine_chunks().to_batches()[0] for table in tables)


@dataclass(frozen=True)
class Read:
    """Result batches, each with the time at which it was read."""

    batches: list[pa.RecordBatch]
    times: list[float]

    def table(self, schema: pa.Schema) -> pa.Table:
        return pa.Table.from_batches(self.batches, schema)

    def last_read(self, first: int, end: int, batch: int) -> npt.NDArray[np.float64]:
        """When the last result of each batch of R (row 0) and S (row 1) was read; 0 where a batch has no result.

        A result belongs to the later of its two readings. At equal numbers that is the one of S.
        """
        found = np.zeros((2, -(-(end - first) // batch)))
        for rows, at in zip(self.batches, self.times, strict=True):
            left, right = rows.column(0).to_numpy(), rows.column(1).to_numpy()
            number = (np.maximum(left, right) - first) // batch
            inside = (number >= 0) & (number < found.shape[1])
            found[(left <= right).astype(np.int64)[inside], number[inside]] = at  # times only grow
        return found


class Reader(threading.Thread):
    """Reads results as they come, as a user would, and keeps them until they are taken."""

    def __init__(self, running: RunningJoin) -> None:
        super().__init__(name="reader", daemon=True)
        self._running = running
        self._read = Read([], [])
        self._lock = threading.Lock()
        self._rows = 0
        self.first = threading.Event()
        self.start()

    def run(self) -> None:
        for batch in self._running.results():
            with self._lock:
                self._read.batches.append(batch)
                self._read.times.append(time.perf_counter())
                self._rows += batch.num_rows
            self.first.set()

    def take(self) -> Read:
        """What has been read since the last time."""
        with self._lock:
            read, self._read = self._read, Read([], [])
        return read

    def wait_for(self, readings: int) -> None:
        """Wait until all results of so many readings of both sides have been read."""
        while True:
            metrics = self._running.metrics()
            if metrics.total("answered", "collector") >= readings and self._rows >= metrics.total("results"):
                return
            time.sleep(0.01)


def send_all(running: RunningJoin, data: Readings, first: int, end: int, batch: int) -> None:
    for pair in data.batches(first, end, batch):
        for stream, rows in zip(STREAMS, pair, strict=True):
            running.send(stream, rows)


def send_at_rate(running: RunningJoin, data: Readings, first: int, end: int, batch: int, rate: float) -> float:
    """Send a batch of each stream whenever one is due, at `rate` rows/s of both together; return when they began."""
    interval = len(STREAMS) * batch / rate
    began = time.perf_counter() + interval
    for number, pair in enumerate(data.batches(first, end, batch)):
        wait = began + number * interval - time.perf_counter()
        if wait > 0:
            time.sleep(wait)
        for stream, rows in zip(STREAMS, pair, strict=True):
            running.send(stream, rows)
    return began


@dataclass(frozen=True)
class Throughput:
    """Tuples of both sides per second, processor seconds per tuple, and all results in order."""

    rate: float
    processor: float
    results: pa.Table


def throughput(
    running: RunningJoin, data: Readings, prefill: int, measured: int, batch: int, processor: Callable[[], float]
) -> Throughput:
    """Fill the windows, then measure `measured` readings of each side, to the last result read."""
    reader = Reader(running)
    send_all(running, data, 0, prefill, batch)
    reader.wait_for(2 * prefill - 1)  # the last reading of S passes the gate when the next of R comes
    began, worked = time.perf_counter(), processor()
    send_all(running, data, prefill, prefill + measured, batch)
    running.finish()
    reader.join()
    seconds, worked = time.perf_counter() - began, processor() - worked
    tuples = 2 * measured
    return Throughput(tuples / seconds, worked / tuples, reader.take().table(running.result_schema()))


def first_result(window: int, runtime: Runtime, data: Readings) -> float:
    """Seconds from the launch to the first result read; 10,000 readings of each side have about 300."""
    began = time.perf_counter()
    with launched(window, runtime) as running:
        reader = Reader(running)
        send_all(running, data, 0, 10_000, 1_000)
        reader.first.wait()
        seconds = time.perf_counter() - began
        running.finish()
        reader.join()
    return seconds
