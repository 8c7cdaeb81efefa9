"""Small tables that tests of several engines join."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def readings(rows: int, seed: int) -> pa.Table:
    """Numbered rows with a column x of 40 values and event times with ties."""
    rng = np.random.default_rng(seed)
    return pa.table({"id": np.arange(rows), "x": rng.integers(0, 40, rows), "ts": np.sort(rng.integers(0, rows, rows))})
