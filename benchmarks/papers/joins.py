"""Joins as workloads of figures: windows full, then so many batches, at full speed, at a set rate, or with a "
"processor each.

A `Feed` is what is sent, in order. Its first batches fill the windows; what follows is measured.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.measure import in_blocks
from benchmarks.virtual_processors import VirtualProcessors
from operators import RunningJoin, StreamJoin
from topology import LocalRuntime, Metrics

PERCENTILES = (50, 75, 95, 99, 100)


@dataclass(frozen=True)
class Feed:
    """Batches of one or two streams in the order in which they are sent.

    filling: how many of them fill the windows.
    rows:    rows of a batch, except perhaps the last ones.
    """

    batches: tuple[tuple[str, pa.RecordBatch], ...]
    filling: int
    rows: int

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(stream for stream, _ in self.batches))

    @property
    def measured(self) -> int:
        """Rows of all streams that are measured."""
        return sum(rows.num_rows for _, rows in self.batches[self.filling :])


@dataclass(frozen=True)
class Run:
    """The figures of a run.

    rate:    rows of all streams per second.
    worked:  rows per second of processor time, of all threads together.
    pairs:   results of the measured rows, and of the second stream's last batch before them.
    busy:    seconds that the tasks of each component were busy.
    latency: milliseconds from when a batch was due until its results were read, at `PERCENTILES`; of runs at a set
             rate.
    """

    rate: float
    worked: float
    pairs: int
    busy: Mapping[str, float]
    latency: tuple[float, ...] = ()
    before: Metrics | None = None
    after: Metrics | None = None


def alternating(tables: Sequence[pa.Table], batch: int, window: int) -> Feed:
    """Batches of R and of S in turns; the column `block` is their event time, and `window` rows of each fill it."""
    sides = [in_blocks(table, batch, parity).to_batches()[0] for parity, table in enumerate(tables)]
    pieces = [
        (name, rows.slice(at, batch))
        for at in range(0, sides[0].num_rows, batch)
        for name, rows in zip(("R", "S"), sides, strict=True)
    ]
    return Feed(tuple(pieces), 2 * -(-window // batch), batch)


def single(table: pa.Table, batch: int, filling: int, stream: str = "T") -> Feed:
    """Batches of one stream, of which `filling` rows come before the measurement."""
    rows = table.combine_chunks().to_batches()[0]
    pieces = [(stream, rows.slice(at, batch)) for at in range(0, rows.num_rows, batch)]
    return Feed(tuple(pieces), -(-filling // batch), batch)


def run(join: StreamJoin, feed: Feed, rate: float | None = None) -> Run:
    """Run the join in this process, as fast as it takes rows, or at `rate` rows/s of all streams together."""
    with join.launch(LocalRuntime(), sources={name: [name] for name in feed.streams}) as running:
        reader = Reader(running)
        for stream, rows in feed.batches[: feed.filling]:
            running.send(stream, rows)
        _settle(running, feed, reader)
        before, pairs = running.metrics(), reader.rows
        start, worked = time.perf_counter(), time.process_time()
        due: dict[int, float] = {}
        sent = 0
        for number, (stream, rows) in enumerate(feed.batches[feed.filling :], feed.filling):
            due[number] = start + sent / rate if rate else time.perf_counter()
            time.sleep(max(0.0, due[number] - time.perf_counter()))
            running.send(stream, rows)
            sent += rows.num_rows
        running.finish()
        reader.join()
        seconds, worked = time.perf_counter() - start, time.process_time() - worked
        after = running.metrics()
    latency = _latency(reader.read, feed, due) if rate else ()
    return Run(sent / seconds, sent / worked, reader.rows - pairs, _busy(before, after), latency, before, after)


def virtual(join: StreamJoin, feed: Feed, hop_seconds: float = 0.0) -> Run:
    """Run the join as if each element had a processor: the rate is that of the busiest element, `busy` is by "
    "element."""
    processors = VirtualProcessors(join.topology(), hop_seconds)
    processors.open(feed.streams)
    for stream, rows in feed.batches[: feed.filling]:
        processors.send(0.0, [(stream, rows)])
    before, pairs = dict(processors.processor_seconds), 0
    for stream, rows in feed.batches[feed.filling :]:
        pairs += sum(found.num_rows for _, found in processors.send(0.0, [(stream, rows)]))
    busy = {name: seconds - before[name] for name, seconds in processors.processor_seconds.items()}
    return Run(feed.measured / max(busy.values()), feed.measured / sum(busy.values()), pairs, busy)


def _busy(before: Metrics, after: Metrics) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for metrics, sign in ((before, -1), (after, 1)):
        for task in metrics.tasks:
            seconds[task.component] = seconds.get(task.component, 0.0) + sign * task.busy_seconds
    return seconds


def _settle(running: RunningJoin, feed: Feed, reader: Reader) -> None:
    """Wait until the results of the rows that fill the windows are read, but for the last batch of the second stream.

    That passes the gate when the first stream's next batch comes.
    """
    sizes = [rows.num_rows for _, rows in feed.batches[: feed.filling]]
    expected = sum(sizes) - (sizes[-1] if len(feed.streams) == 2 else 0)
    while True:
        metrics = running.metrics()
        if metrics.total("answered") >= expected and reader.rows >= metrics.total("results"):
            return
        time.sleep(0.005)


def _latency(read: list[tuple[float, pa.RecordBatch]], feed: Feed, due: Mapping[int, float]) -> tuple[float, ...]:
    """Of each result whose later row was measured; the first two columns are the row numbers in their streams."""
    found = []
    moments = np.full(max(due) + 1, np.nan)
    moments[list(due)] = list(due.values())
    two = len(feed.streams)
    for at, rows in read:
        left, right = (rows.column(side).to_numpy() // feed.rows * two + side * (two - 1) for side in (0, 1))
        found.append((at - moments[np.maximum(left, right)]) * 1e3)
    every = np.concatenate(found) if found else np.empty(0)
    return tuple(float(value) for value in np.nanpercentile(every, PERCENTILES))


class Reader(threading.Thread):
    """Reads results as they come, as a user would."""

    def __init__(self, running: RunningJoin) -> None:
        super().__init__(name="reader", daemon=True)
        self._running = running
        self.rows = 0
        self.read: list[tuple[float, pa.RecordBatch]] = []
        self.start()

    def run(self) -> None:
        for rows in self._running.results():
            self.rows += rows.num_rows
            self.read.append((time.perf_counter(), rows))
