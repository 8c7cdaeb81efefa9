"""Rows with a column of every Arrow type that a payload may have, for tests that carry them somewhere."""

from __future__ import annotations

import pyarrow as pa

from tests.operators.results.test_payload_store import POOLS, array_of


def every_type(seed: int, rows: int = 12) -> pa.RecordBatch:
    """Return rows with a number `n` and one column per type, with nulls; values and dictionaries depend on the seed.

    The columns are slices: their first value is not the first of their buffers.
    """
    columns: dict[str, pa.Array] = {"n": pa.array(range(rows), pa.int64())}
    for types, pool in POOLS:
        for kind in types:
            cells = [None if (row + seed) % 5 == 4 else pool[(row + seed) % len(pool)] for row in range(-2, rows)]
            columns[f"c{len(columns)}"] = array_of(kind, cells).slice(2)
    return pa.record_batch(columns)
