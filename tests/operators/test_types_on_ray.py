"""Columns of every type as keys and as payload of one join: on Ray the rows are those of the embedded runtime."""

from __future__ import annotations

import random
from functools import reduce
from operator import and_

import pyarrow as pa
import pytest

from operators import CountWindow, SPOJoin, StreamJoin
from operators.query.streams import stream
from tests.operators.every_type import every_type
from tests.operators.types_of_keys import TYPES
from topology import LocalRuntime, RayRuntime, Workers

ROWS = 40


def rows(seed: int) -> pa.Table:
    """Columns k0, k1, ... of every type that compares, and those of every other type as payload."""
    chosen = random.Random(seed)
    table = pa.Table.from_batches([every_type(seed, ROWS)])
    for number, (kind, pool) in enumerate(TYPES.values()):
        values = [value for value in pool if value == value][:2]
        cells = [values[chosen.random() < 0.05] for _ in range(ROWS)]  # equal as a rule, or nothing would match
        table = table.append_column(f"k{number}", pa.array(cells, kind))
    return table


def join() -> StreamJoin:
    left, right = stream("R"), stream("S")
    pairs = [(getattr(left, f"k{number}"), getattr(right, f"k{number}")) for number in range(len(TYPES))]
    on = [one <= other if number % 2 else one >= other for number, (one, other) in enumerate(pairs)]
    return StreamJoin("R", "S", reduce(and_, on), CountWindow(100), using=SPOJoin(elements=1))


@pytest.mark.usefixtures("ray_cluster")
def test_every_type_on_ray_as_embedded() -> None:
    sources = {"R": rows(1), "S": rows(2)}
    local = join().collect(sources, LocalRuntime())
    assert local.num_rows > 10
    assert join().collect(sources, RayRuntime(placement=Workers(3))).to_pylist() == local.to_pylist()
