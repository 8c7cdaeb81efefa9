"""The strongest rival for a band join in batches: Polars' hash join on buckets as wide as the band.

Two keys within c of each other lie in the same bucket of width c + 1 or in neighbouring ones. So the
micro-batch is written three times, once for each neighbour, joined by equality of buckets with the
window, and filtered by the band itself. The window is a frame to which batches are appended and whose
first rows are sliced off. Written as a query, the window's buckets are computed in it each time; tuned,
the window carries them as a column, which saves a division per row of the window and batch.
"""

from __future__ import annotations

import os
import time

# Polars fixes its thread pool when it is first imported; the comparison is of one thread each.
os.environ.setdefault("POLARS_MAX_THREADS", "1")

import numpy as np
import polars as pl

from benchmarks.index_workloads import Workload, batches, window_keys

MOST_CHUNKS = 64


class BucketedJoin:
    """Both sides' windows and the join of a micro-batch with either."""

    def __init__(self, workload: Workload, half: int, tuned: bool) -> None:
        self._window = workload.window
        self._tuned = tuned
        self._half = half
        self._sides = [self._frame(window_keys(workload, side), 0) for side in (0, 1)]

    def _frame(self, keys: np.ndarray, first: int) -> pl.DataFrame:
        ids = np.arange(first, first + len(keys))
        frame = pl.DataFrame({"id": ids, "key": keys})
        return self._with_bucket(frame) if self._tuned else frame

    def _with_bucket(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(bucket=pl.col("key") // (self._half + 1))

    def step(self, side: int, keys: np.ndarray, first: int) -> int:
        """Join a micro-batch of `side`, let it enter its window; the number of pairs."""
        batch = self._frame(keys, first)
        probe, other = batch, self._sides[1 - side]
        if not self._tuned:
            probe, other = self._with_bucket(batch), self._with_bucket(other)
        neighbours = pl.concat([probe.with_columns(pl.col("bucket") + shift) for shift in (-1, 0, 1)])
        joined = neighbours.join(other, on="bucket", suffix="_w")
        pairs = joined.filter((pl.col("key") - pl.col("key_w")).abs() <= self._half).select("id", "id_w")
        window = self._sides[side].vstack(batch).tail(self._window)
        self._sides[side] = window.rechunk() if window.n_chunks() > MOST_CHUNKS else window
        return pairs.height


def measure(workload: Workload, tuples: int, *, tuned: bool) -> tuple[float, list[int]]:
    """Tuples/s of processor time over about `tuples` tuples, and the pairs found in each round."""
    join = BucketedJoin(workload, workload.half_band(), tuned)
    rounds = max(2, tuples // (2 * workload.batch))
    first = workload.window
    found = []
    pairs = batches(workload, rounds)
    start = time.process_time()
    for pair in pairs:
        found.append(sum(join.step(side, keys, first) for side, keys in enumerate(pair)))
        first += workload.batch
    return 2 * rounds * workload.batch / (time.process_time() - start), found
