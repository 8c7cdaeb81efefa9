"""Topologies that the tests and the pictures of the page look at, and threads that keep them busy."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
import pyarrow as pa

import interlace as il

START = 1_714_550_400_000_000


def trips_and_calls() -> il.StreamJoin:
    """A join of two streams with event times."""
    return il.StreamJoin(
        "trips",
        "calls",
        "trips.distance > calls.least AND trips.fare < calls.most",
        il.TimeWindow("20 s"),
        select=["trips.id", "calls.id"],
        event_time="ts",
    )


def rows(first: int, count: int, seed: int) -> pa.Table:
    """Rows of either stream: 2,000 to a second of event time."""
    chance = np.random.default_rng(seed)
    times = START + (first + np.arange(count)) * 500
    return pa.table(
        {
            "id": np.arange(first, first + count),
            "ts": pa.array(times).cast(pa.timestamp("us")),
            "distance": chance.exponential(2.0, count),
            "fare": chance.exponential(14.0, count),
            "least": 14.0 + chance.exponential(2.0, count),
            "most": chance.exponential(2.0, count),
        }
    )


@contextmanager
def kept_busy(running: il.Handle, batch: int = 2000, pause: float = 0.1, behind: int = 0) -> Iterator[None]:
    """Send rows to both streams and read results until the block ends.

    behind: batches that the second stream lags; its rows come so much later.
    """
    over = threading.Event()

    def send() -> None:
        with suppress(il.InterlaceError):
            number = 0
            while not over.wait(pause):
                running.send("trips", rows(number * batch, batch, number).select(["id", "ts", "distance", "fare"]))
                if number >= behind:
                    late = number - behind
                    running.send("calls", rows(late * batch, batch, -late % 1000).select(["id", "ts", "least", "most"]))
                number += 1

    def read() -> None:
        with suppress(il.InterlaceError):
            while not over.is_set():
                for _ in running.results(timeout=0.2):
                    if over.is_set():
                        return

    threads = [threading.Thread(target=send), threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()
