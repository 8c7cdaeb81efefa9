"""Plain values survive as they are; other values are named."""

from __future__ import annotations

import datetime
import threading
from collections import Counter, defaultdict, deque
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology import NoSnapshotError
from topology.bolts.plain_values import from_bytes, to_bytes

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary(),
    st.decimals(allow_nan=False),
    st.datetimes(), st.datetimes(timezones=st.just(datetime.UTC)), st.dates(), st.times(), st.timedeltas(),
)  # fmt: skip
hashable = st.one_of(scalars, st.tuples(scalars, scalars), st.frozensets(scalars, max_size=3))
values = st.recursive(
    st.one_of(scalars, st.sets(hashable, max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner),
        st.dictionaries(hashable, inner, max_size=3),
        st.dictionaries(st.text(), inner, max_size=3),
        st.builds(lambda items: deque(items, 3), st.lists(inner, max_size=3)),
        st.builds(Counter, st.dictionaries(hashable, st.integers(), max_size=3)),
        st.builds(lambda items: defaultdict(list, items), st.dictionaries(st.text(), inner, max_size=3)),
    ),
    max_leaves=8,
)


@given(values)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    found = from_bytes(to_bytes(value, "the state"))
    assert found == value
    assert type(found) is type(value)
    assert repr(found) == repr(value) or isinstance(value, set | frozenset | dict | list | tuple | deque)
    assert to_bytes(found, "the state") == to_bytes(value, "the state")


def test_what_equals_does_not_tell_apart() -> None:
    found = from_bytes(to_bytes([float("nan"), float("-inf"), -0.0, True, 1, 1.0], "the state"))
    assert repr(found) == "[nan, -inf, -0.0, True, 1, 1.0]"
    many = defaultdict(int, {"a": 1})
    assert from_bytes(to_bytes(many, "the state"))["b"] == 0


@pytest.mark.parametrize(
    "array",
    [np.arange(6).reshape(2, 3), np.zeros(0), np.array(["a", "bc"]), np.array(["2024-01-01"], "M8[s]"), np.array(5)],
    ids=str,
)
def test_arrays_and_numbers_of_numpy(array: Any) -> None:
    found = from_bytes(to_bytes(array, "the state"))
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)
    assert found.shape == array.shape
    found[...] = array  # it is writable
    one = np.float32(1.5)
    assert type(from_bytes(to_bytes(one, "the state"))) is np.float32


def test_arrow_rows() -> None:
    batch = pa.record_batch({"x": [1, None], "y": [["a"], []]})
    table = pa.table({"t": pa.chunked_array([[1], [2]])})
    found = from_bytes(to_bytes([batch, batch.slice(1), batch.slice(0, 0), table], "the state"))
    assert found == [batch, batch.slice(1), batch.slice(0, 0), table]


@pytest.mark.parametrize(
    "value", [threading.Lock(), object(), {"a": [lambda: 1]}, {1: {2: object()}}, np.array([object()])]
)
def test_other_values_are_refused_by_name(value: Any) -> None:
    with pytest.raises(NoSnapshotError, match="the state of bolt 'b' holds a"):
        to_bytes(value, "the state of bolt 'b'")
