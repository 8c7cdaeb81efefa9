"""Every index on every type that 64-bit keys hold exactly, against comparisons of Python values pair by pair."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import Interval, Live
from operators.bounds.intervals import bind
from operators.protocol.sides import RIGHT
from operators.query.condition import normalise
from operators.query.streams import stream
from operators.values.key_types import to_keys
from tests.indexes.every_index import NAMES, tiny_index
from tests.indexes.generated import seeds

R, S = stream("R"), stream("S")

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, "=": operator.eq, "!=": operator.ne, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip

EPOCH = datetime(1970, 1, 1)
INTEGER_POOL = {
    f"{sign}{bits}": (0 if sign == "uint" else -(2 ** (bits - 1)), 0, 1, 2, 3, 2 ** (bits - (sign == "int")) - 1)
    for sign in ("int", "uint")
    for bits in (8, 16, 32, 64)
}
FLOATS = (-math.inf, -1.5, -0.0, 0.0, 5e-324, 1.0, 2.0, 2.0**53, 1e300, math.inf, math.nan)
POOLS: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    **{name: (getattr(pa, name)(), pool) for name, pool in INTEGER_POOL.items()},
    "bool": (pa.bool_(), (False, True)),
    "float32": (pa.float32(), (*FLOATS[:4], 1.0, 2.0, 16777216.0, math.inf, math.nan)),
    "float64": (pa.float64(), FLOATS),
    **{
        f"timestamp[{unit}]": (pa.timestamp(unit), [EPOCH + timedelta(seconds=s) for s in (-(10**9), -1, 0, 1, 10**9)])
        for unit in ("s", "ms", "us")
    },
    "date32": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)]),
    "date64": (pa.date64(), [date(1969, 12, 31), date(1970, 1, 1), date(2026, 2, 3)]),
    "duration": (pa.duration("us"), [timedelta(seconds=s) for s in (-5, 0, 1, 10**8)]),
    "decimal 18": (pa.decimal128(18, 4), [Decimal(f"{n}E-4") for n in (-(10**18) + 1, -1, 0, 1, 2, 10**18 - 1)]),
}  # fmt: skip

# The types of the stored and of the probing column; different ones compare exactly, as numbers do.
PAIRS = [(name, name) for name in POOLS] + [
    ("int64", "float64"), ("float64", "int64"), ("uint64", "int64"), ("uint64", "float64"), ("int8", "uint64"),
    ("float32", "float64"), ("int64", "float32"),
]  # fmt: skip


def column(rng: np.random.Generator, name: str, rows: int) -> pa.Array:
    arrow, pool = POOLS[name]
    picked = [None if rng.random() < 0.1 else pool[int(rng.integers(len(pool)))] for _ in range(rows)]
    return pa.array(picked, arrow)


def interval_of(sign: str, stored: pa.DataType, probe: pa.Array) -> Interval:
    """The interval of `stored SIGN probe` for each probe row."""
    dimension = normalise(COMPARE[sign](R.a, S.a), "R", "S").branches[0].dimensions[0]
    return bind(dimension, stored, probe.type).intervals(RIGHT, to_keys("a", probe))


def comparable(value: Any) -> bool:
    return value is not None and value == value


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=40)
@given(seeds, st.sampled_from(PAIRS), st.sampled_from(sorted(COMPARE)))
def test_every_type_compares_as_its_values_do(name: str, seed: int, types: tuple[str, str], sign: str) -> None:
    rng = np.random.default_rng(seed)
    stored, probing = types
    index = tiny_index(name, rng)(1, 0)
    held: list[Any] = []
    first = 0
    for _ in range(int(rng.integers(1, 5))):
        batch = column(rng, stored, int(rng.integers(0, 12)))
        index.insert([to_keys("a", batch)])
        held += batch.to_pylist()
        if rng.random() < 0.3:
            first = int(rng.integers(first, len(held) + 1))
            index.expire(first)
        if rng.random() < 0.2:
            index = type(index).restore(index.snapshot())
        probe = column(rng, probing, int(rng.integers(0, 8)))
        live = Live(np.full(len(probe), first), np.full(len(probe), len(held)))
        found = index.probe([interval_of(sign, POOLS[stored][0], probe)], live)
        expected = [
            [
                position
                for position in range(first, len(held))
                if comparable(value) and comparable(held[position])
                and COMPARE[sign](held[position], value)
            ]
            for value in probe.to_pylist()
        ]  # fmt: skip
        rows = [found.positions[a:b].tolist() for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)]
        assert rows == expected
        index.check_invariants()
