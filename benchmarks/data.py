"""Generated input for the benchmarks: the shape of the papers' data sets, at any size."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def datacentre_readings(n: int, noise: float, seed: int) -> pa.Table:
    """Power and cooling of `n` racks: the data of SPO-Join's query Q1 (section 5.2).

    Cooling follows power up to normal noise, so "less power but more cooling" is rare, and its rate
    is proportional to `noise`: against a window of a million rows a reading meets about 3 others at
    0.05 and about 280 at 5. `id` is the row number, so it doubles as the row's position.
    """
    rng = np.random.default_rng(seed)
    power = rng.uniform(0.0, 1e4, n)
    cool = power + rng.normal(0.0, noise, n)
    return pa.table({"id": np.arange(n, dtype=np.int64), "power": power, "cool": cool})
