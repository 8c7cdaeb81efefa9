"""One hop between processes on Ray: our edge beside a plain actor call with the same batch.

edge:    driver -> one task's inbox; rows per second, with as many batches under way as each way allows.
latency: the same way when it is idle; milliseconds from the call to the batch in the task's hands.
chain:   driver -> input -> bolt -> sink -> driver with `RayRuntime`, beside three actors that call each other.

Before anything is timed both ways carry the same batches, and what arrived is compared with what was sent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import ray

from topology import (
    Authority,
    Barrier,
    Batch,
    EdgeReceiver,
    Grant,
    Inbox,
    MapBatches,
    Origin,
    Peer,
    RayRuntime,
    Right,
    RunningTopology,
    SocketEdge,
    TopologyBuilder,
)

SIZES = (1, 100, 1_000, 10_000, 100_000)
EDGE_BYTES = 8 * 1024 * 1024
CALLS_UNDER_WAY = 64
"""Actor calls sent ahead of their answers; more do not make them faster."""


class Taker:
    """The far end of both ways: counts what comes, or keeps it while contents are compared."""

    def __init__(self, authority: Authority | None, following: Any = None) -> None:
        self._following = following
        self._under_way: list[Any] = []
        self._kept: list[pa.RecordBatch] = []
        self._keeping = True
        self._latencies: list[float] = []
        self._rows = 0
        self._marked = threading.Semaphore(0)
        if authority is not None:
            self._inbox = Inbox(1)
            self._receiver = EdgeReceiver(authority, {("taker", 0): ((Origin("driver", 0, 0),), self._inbox)})
            threading.Thread(target=self._take_messages, daemon=True).start()

    def location(self) -> str:
        return self._receiver.location

    def take(self, rows: pa.RecordBatch, born: float) -> None:
        """Take a batch that came with an actor call, and pass it on if there is someone to pass it to."""
        self._count(rows, born)
        if self._following is not None:
            self._under_way.append(self._following.take.remote(rows, born))
            if len(self._under_way) > CALLS_UNDER_WAY:
                ray.get(self._under_way.pop(0))

    def settle(self) -> int:
        """Return the rows counted since the last time, here or at the end of the chain."""
        ray.get(self._under_way)
        self._under_way.clear()
        rows, self._rows = self._rows, 0
        return rows if self._following is None else ray.get(self._following.settle.remote())

    def settle_after_mark(self) -> int:
        """As `settle`, when the barrier that follows the batches on the edge has arrived."""
        self._marked.acquire()
        return self.settle()

    def kept(self) -> list[pa.RecordBatch]:
        kept, self._kept, self._keeping = self._kept, [], False
        return kept

    def latencies(self) -> list[float]:
        latencies, self._latencies = self._latencies, []
        return latencies

    def _take_messages(self) -> None:
        while True:
            found = self._inbox.take()
            if found is None:
                return
            if isinstance(found[1], Batch):
                self._count(found[1].rows, found[1].born)
            else:
                self._marked.release()

    def _count(self, rows: pa.RecordBatch, born: float) -> None:
        if born:
            self._latencies.append(time.time() - born)
        if self._keeping:
            self._kept.append(rows)
        self._rows += rows.num_rows


def batch_of(rows: int, seed: int = 0) -> pa.RecordBatch:
    rng = np.random.default_rng(seed)
    return pa.record_batch({"id": np.arange(rows), "power": rng.random(rows), "cool": rng.random(rows)})


def same(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


def broken(error: Exception) -> None:
    print(f"the edge broke: {error}", flush=True)


class Edge:
    """Driver to one process: the edge and the actor call."""

    def __init__(self) -> None:
        authority = Authority()
        token = authority.issue(Grant(Right.CHANNEL))
        remote = ray.remote(num_cpus=0, max_concurrency=1)(Taker)
        self.taker = remote.remote(authority)
        self.called = remote.remote(None)
        peer = Peer(ray.get(self.taker.location.remote()), token)
        self.edge = SocketEdge(peer, ("driver", 0), ("taker", 0), 0, 0, EDGE_BYTES, broken)
        self._sent = 0

    def send(self, rows: pa.RecordBatch, born: float = 0.0) -> None:
        self.edge.put(Batch("default", rows, self._sent, born=born))
        self._sent += rows.num_rows

    def send_all(self, rows: pa.RecordBatch, count: int) -> int:
        for _ in range(count):
            self.send(rows)
        self.edge.put(Barrier(0))
        return int(ray.get(self.taker.settle_after_mark.remote()))

    def call_all(self, rows: pa.RecordBatch, count: int) -> int:
        return call_all(self.called, rows, count)

    def compare(self) -> None:
        batches = [batch_of(size, size) for size in SIZES]
        for batch in batches:
            self.send(batch)
            ray.get(self.called.take.remote(batch, 0.0))
        self.edge.put(Barrier(0))
        ray.get(self.taker.settle_after_mark.remote())
        ray.get(self.called.settle.remote())
        assert ray.get(self.taker.kept.remote()) == batches, "the edge changed its batches"
        assert ray.get(self.called.kept.remote()) == batches, "the actor call changed its batches"

    def latency(self, rows: pa.RecordBatch, count: int) -> tuple[float, float]:
        for _ in range(count):
            self.send(rows, time.time())
            time.sleep(0.002)
        for _ in range(count):
            self.called.take.remote(rows, time.time())
            time.sleep(0.005)
        self.send_all(rows, 0)
        ours, theirs = ray.get([self.taker.latencies.remote(), self.called.latencies.remote()])
        return float(np.median(ours)) * 1e3, float(np.median(theirs)) * 1e3

    def close(self) -> None:
        self.edge.close()
        ray.kill(self.taker)
        ray.kill(self.called)


def call_all(actor: Any, rows: pa.RecordBatch, count: int) -> int:
    under_way: list[Any] = []
    for _ in range(count):
        under_way.append(actor.take.remote(rows, 0.0))
        if len(under_way) > CALLS_UNDER_WAY:
            ray.get(under_way.pop(0))
    ray.get(under_way)
    return int(ray.get(actor.settle.remote()))


def chain_all(running: RunningTopology, results: Iterator[pa.RecordBatch], rows: pa.RecordBatch, count: int) -> int:
    """Send and read at once, as a user would; returns the rows read."""
    sender = threading.Thread(target=running.send, args=("in", pa.Table.from_batches([rows] * count)))
    sender.start()
    read = 0
    for part in results:
        read += part.num_rows
        if read == rows.num_rows * count:
            break
    sender.join()
    return read


def rate(send: Callable[[pa.RecordBatch, int], int], rows: pa.RecordBatch, seconds: float) -> float:
    """Rows per second: find out how many batches fill the time, then send that many."""
    count = 4
    while True:
        start = time.perf_counter()
        arrived = send(rows, count)
        taken = time.perf_counter() - start
        assert arrived == count * rows.num_rows, f"{count * rows.num_rows} rows sent, {arrived} arrived"
        if taken >= seconds / 2:
            return arrived / taken
        count = int(count * min(10.0, max(2.0, 0.9 * seconds / taken)))


def run(quick: bool) -> dict[str, Any]:
    """Measure every size; returns the rows of the table."""
    seconds = 0.4 if quick else 3.0
    table: list[dict[str, Any]] = []
    started = not ray.is_initialized()
    if started:
        ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        edge = Edge()
        edge.compare()
        print(f"{'edge: batch':>14}{'rows/s':>15}{'batches/s':>12}{'actor call':>15}{'ratio':>8}   (rows/s)")
        for size in SIZES:
            batch = batch_of(size)
            add(table, f"batch={size}", size, rate(edge.send_all, batch, seconds), rate(edge.call_all, batch, seconds))
        print(f"{'idle: batch':>14}{'ms':>15}{'':>12}{'actor call':>15}{'ratio':>8}   (one way, median)")
        for size in (1, 10_000):
            ours, theirs = edge.latency(batch_of(size), 50 if quick else 300)
            print(f"{size:>14,}{ours:>15.3f}{'':>12}{theirs:>15.3f}{theirs / ours:>8.1f}")
            table.append(row(f"idle latency in ms, batch={size}", ours, theirs, theirs / ours))
        edge.close()
        print(f"{'chain: batch':>14}{'rows/s':>15}{'batches/s':>12}{'actor calls':>15}{'ratio':>8}   (rows/s)")
        measure_chain(table, seconds, (1_000, 10_000) if quick else SIZES[1:])
    finally:
        if started:
            ray.shutdown()
    return {"name": "ray-hop", "rows": table}


def measure_chain(table: list[dict[str, Any]], seconds: float, sizes: tuple[int, ...]) -> None:
    builder = TopologyBuilder("chain")
    builder.input("in")
    builder.bolt("same", MapBatches(same)).shuffle_grouping("in")
    builder.sink().shuffle_grouping("same")
    remote = ray.remote(num_cpus=0, max_concurrency=1)(Taker)
    last = remote.remote(None)
    middle = remote.remote(None, last)
    first = remote.remote(None, middle)
    ray.get([actor.kept.remote() for actor in (first, middle, last)])  # from now on they only count
    with RayRuntime().launch(builder.build()) as running:
        sent = batch_of(1_000, 1)
        running.send("in", sent)
        results = running.results()
        assert next(results) == sent, "the chain changed its batch"
        for size in sizes:
            batch = batch_of(size)
            ours = rate(lambda rows, count: chain_all(running, results, rows, count), batch, seconds)
            theirs = rate(lambda rows, count: call_all(first, rows, count), batch, seconds)
            add(table, f"chain batch={size}", size, ours, theirs)
    for actor in (first, middle, last):
        ray.kill(actor)


def add(table: list[dict[str, Any]], case: str, size: int, ours: float, theirs: float) -> None:
    print(f"{size:>14,}{ours:>15,.0f}{ours / size:>12,.0f}{theirs:>15,.0f}{ours / theirs:>8.1f}", flush=True)
    table.append(row(case, ours, theirs, ours / theirs))


def row(case: str, ours: float, theirs: float, ratio: float) -> dict[str, Any]:
    return {"case": case, "ours": ours, "peers": {"actor call": theirs}, "ratio": ratio}
