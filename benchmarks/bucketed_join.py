"""The strongest rival for a band join in batches: Polars' hash join on buckets as wide as the band.

Two keys within c of each other lie in the same bucket of width c + 1 or in neighbouring ones. So the
micro-batch is written three times, once for each neighbour, joined by equality of buckets with the
window, which carries its bucket as a column, and filtered by the band itself. The window is a frame to
which batches are appended and whose first rows are sliced off.
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

    def __init__(self, workload: Workload, half: int) -> None:
        self._window = workload.window
        self._half = half
        self._sides = [self._frame(window_keys(workload, side), 0) for side in (0, 1)]

    def _frame(self, keys: np.ndarray, first: int) -> pl.DataFrame:
        ids = np.arange(first, first + len(keys))
        return pl.DataFrame({"id": ids, "key": keys, "bucket": keys // (self._half + 1)})

    def step(self, side: int, keys: np.ndarray, first: int) -> int:
        """Join a micro-batch of `side`, let it enter its window; the number of pairs."""
        batch = self._frame(keys, first)
        neighbours = pl.concat([batch.with_columns(pl.col("bucket") + shift) for shift in (-1, 0, 1)])
        joined = neighbours.join(self._sides[1 - side], on="bucket", suffix="_w")
        pairs = joined.filter((pl.col("key") - pl.col("key_w")).abs() <= self._half).select("id", "id_w")
        window = self._sides[side].vstack(batch).tail(self._window)
        self._sides[side] = window.rechunk() if window.n_chunks() > MOST_CHUNKS else window
        return pairs.height


def measure(workload: Workload, tuples: int) -> tuple[float, list[int]]:
    """Tuples/s over about `tuples` tuples, and the pairs found in each round."""
    join = BucketedJoin(workload, workload.half_band())
    rounds = max(2, tuples // (2 * workload.batch))
    first = workload.window
    found = []
    pairs = batches(workload, rounds)
    start = time.perf_counter()
    for pair in pairs:
        found.append(sum(join.step(side, keys, first) for side, keys in enumerate(pair)))
        first += workload.batch
    return 2 * rounds * workload.batch / (time.perf_counter() - start), found
