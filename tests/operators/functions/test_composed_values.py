"""Lists, structs and intervals as bytes: two encoded values compare as the values do."""

from __future__ import annotations

import functools
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.functions.arguments import ArgumentError
from operators.functions.composed_values import encoded, shape


def order(one: Any, other: Any) -> int:
    """-1, 0 or 1, by the law: parts from the first on, a start before the whole, NaN above numbers, null above all."""
    if one is None or other is None:
        return (one is None) - (other is None)
    if isinstance(one, dict):
        one, other = ([each[name] for name in sorted(each)] for each in (one, other))
    if isinstance(one, list):
        found = [order(x, y) for x, y in zip(one, other, strict=False)]
        return next((each for each in found if each), (len(one) > len(other)) - (len(one) < len(other)))
    if isinstance(one, float) and (math.isnan(one) or math.isnan(other)):
        return math.isnan(one) - math.isnan(other)
    return (one > other) - (one < other)


NUMBERS = st.none() | st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)])
FLOATS = st.none() | st.sampled_from([0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan])
TEXTS = st.none() | st.sampled_from(["", "a", "a\x00", "a\x00b", "ab", "é", "\x00"])
CASES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.list_(pa.int64()), st.lists(NUMBERS, max_size=3)),
    (pa.large_list(pa.float64()), st.lists(FLOATS, max_size=3)),
    (pa.list_(pa.string()), st.lists(TEXTS, max_size=3)),
    (pa.list_(pa.list_(pa.int64())), st.lists(st.none() | st.lists(NUMBERS, max_size=2), max_size=2)),
    (pa.struct([("a", pa.string()), ("b", pa.int64())]), st.fixed_dictionaries({"a": TEXTS, "b": NUMBERS})),
    (pa.list_(pa.bool_(), 2), st.lists(st.none() | st.booleans(), min_size=2, max_size=2)),
]


@pytest.mark.parametrize(("kind", "values"), CASES, ids=[str(kind) for kind, _ in CASES])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_encoded_values_compare_as_the_values_do(kind: pa.DataType, values: st.SearchStrategy[Any], data: Any) -> None:
    rows = data.draw(st.lists(st.none() | values, min_size=1, max_size=8))
    array = pa.concat_arrays([pa.array([None], kind), pa.array(rows, kind)])[1:]  # with an offset
    found = encoded(array).to_pylist()
    assert [each is None for each in found] == [row is None for row in rows]
    for one, x in zip(rows, found, strict=True):
        for other, y in zip(rows, found, strict=True):
            if x is not None and y is not None:
                assert (x > y) - (x < y) == order(one, other), (one, other)


def test_integers_of_every_width_share_an_encoding() -> None:
    lists = [[[0, 5], [255]]] * 4
    kinds = [pa.int16(), pa.int64(), pa.uint8(), pa.uint64()]
    arrays = [encoded(pa.array(rows, pa.list_(kind))) for rows, kind in zip(lists, kinds, strict=True)]
    assert all(array.equals(arrays[0]) for array in arrays)
    huge = encoded(pa.array([[2**64 - 1]], pa.list_(pa.uint64())))[0].as_py()
    assert huge > encoded(pa.array([[2**63 - 1]], pa.list_(pa.int64())))[0].as_py()


def test_intervals_compare_by_their_length_with_months_of_30_days() -> None:
    parts = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 0, 86_400 * 10**9), (1, 0, 0), (0, 30, 0), (1, -30, 0), (0, 31, 0)]
    day = 86_400 * 10**9
    lengths = [(30 * months + days) * day + rest for months, days, rest in parts]
    found = encoded(pa.array([pa.MonthDayNano(part) for part in parts])).to_pylist()
    by_length = functools.cmp_to_key(order)
    assert [by_length(x) < by_length(y) for x in lengths for y in lengths] == [x < y for x in found for y in found]


def test_types_whose_values_do_not_compare_are_refused() -> None:
    with pytest.raises(ArgumentError, match="do not compare"):
        shape(pa.list_(pa.map_(pa.string(), pa.int64())))
    assert shape(pa.list_(pa.int8())) == shape(pa.large_list(pa.uint64())) != shape(pa.list_(pa.float64()))
