from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from operators.query.errors import PredicateError
from operators.values.key_types import key_type, to_keys


@pytest.mark.parametrize(
    ("kind", "values", "keys"),
    [
        (pa.int8(), [-128, 127], [-128, 127]),
        (pa.uint8(), [0, 255], [0, 255]),
        (pa.uint32(), [2**32 - 1], [2**32 - 1]),
        (pa.int64(), [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
        (pa.uint64(), [0, 2**63, 2**64 - 1], [-(2**63), 0, 2**63 - 1]),
        (pa.bool_(), [True, False, True], [1, 0, 1]),
        (pa.float32(), [0.5, -math.inf], [0.5, -math.inf]),
        (pa.float16(), [np.float16(0.1)], [float(np.float16(0.1))]),
        (pa.float64(), [0.1, math.inf], [0.1, math.inf]),
    ],
)
def test_numbers_keep_value_and_order(kind: Any, values: list[Any], keys: list[Any]) -> None:
    got = to_keys("k", pa.array(values, kind))
    assert got.valid is None
    assert got.values.tolist() == keys
    assert got.values.dtype == (np.float64 if pa.types.is_floating(kind) else np.int64)


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
        *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
        pa.timestamp("us", "Europe/Paris"), pa.date64(), pa.time64("us"), pa.time64("ns"),
        pa.date32(), pa.time32("s"), pa.time32("ms"),
    ],
)  # fmt: skip
def test_times_become_their_ticks(kind: Any) -> None:
    storage = pa.int64() if kind.bit_width == 64 else pa.int32()
    got = to_keys("k", pa.array([5, None, -7], storage).view(kind))
    assert got.values[[0, 2]].tolist() == [5, -7]
    assert got.valid is not None
    assert got.valid.tolist() == [True, False, True]


def test_null_and_nan_are_invalid_and_negative_zero_is_zero() -> None:
    got = to_keys("k", pa.array([1.0, None, math.nan, -0.0, 0.0]))
    assert got.valid is not None
    assert got.valid.tolist() == [True, False, False, True, True]
    assert not np.signbit(got.values[3:]).any()


def test_slices_and_chunks_are_read_in_place() -> None:
    whole = pa.array([None, 1, 2, None, 4, 5], pa.int32())
    chunked = pa.chunked_array([whole.slice(1, 3), whole.slice(4)])
    got = to_keys("k", chunked)
    assert got.valid is not None
    assert got.valid.tolist() == [True, True, False, True, True]
    assert got.values[[0, 1, 3, 4]].tolist() == [1, 2, 4, 5]
    assert to_keys("k", pa.chunked_array([], pa.uint64())).values.tolist() == []
    bits = pa.array([True, False, None, True, True]).slice(1, 3)
    assert to_keys("k", bits).values[[0, 2]].tolist() == [0, 1]


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.timestamp("us")])
def test_wide_columns_are_not_copied(kind: Any) -> None:
    array = pa.array([3, 1, None, 2], pa.int64()).cast(pa.float64() if kind == pa.float64() else kind)
    for given in (array, array.slice(1), pa.chunked_array([array])):
        keys = to_keys("k", given)
        address = keys.values.__array_interface__["data"][0]
        start = array.buffers()[1].address
        assert start <= address < start + 32
        assert keys.values[-1] == 2
        assert len(keys.values) == len(given)


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        (pa.map_(pa.int8(), pa.int8()), "use a column of numbers"),
        (pa.null(), r'it holds nulls alone; give it a type: table\["price"\]\.cast\("int64"\)'),
        (pa.uuid(), r'cast it to what it is stored as: table\["price"\]\.cast\("fixed_size_binary\[16\]"\)'),
    ],
)
def test_other_types_are_refused_with_a_remedy(kind: Any, remedy: str) -> None:
    with pytest.raises(PredicateError, match=remedy) as caught:
        key_type("price", kind)
    assert f"column price of type {kind}" in str(caught.value)
