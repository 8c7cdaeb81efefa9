"""Columns as they lie in memory: rows arrive unchanged, whatever slice of whatever they are, or are not sent so."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topology.edges.columns import is_plain, memory_of, rows_in

NUMBERS = [pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()]


def sent(rows: pa.RecordBatch) -> pa.RecordBatch | None:
    """The rows after they have been taken apart and put together; None if they are not taken apart."""
    parts = memory_of(rows)
    if parts is None:
        return None
    memory = pa.py_buffer(b"".join(bytes(part) for part in parts))
    return rows_in(memory, rows.schema)


@st.composite
def plain_rows(draw: st.DrawFn) -> pa.RecordBatch:
    """Columns of numbers and lists of numbers, sliced."""
    length = draw(st.integers(0, 40))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    columns = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(NUMBERS))
        if draw(st.booleans()):
            columns.append(pa.array(rng.integers(0, 100, length), pa.int64()).cast(kind))
        else:
            lists = [rng.integers(0, 100, rng.integers(0, 4)).tolist() for _ in range(length)]
            columns.append(pa.array(lists, pa.large_list(pa.int64())).cast(pa.large_list(kind)))
    rows = pa.record_batch(columns, names=[str(number) for number in range(len(columns))])
    begin = draw(st.integers(0, length))
    return rows.slice(begin, draw(st.integers(0, length - begin)))


@settings(max_examples=200)
@given(rows=plain_rows())
def test_rows_arrive_as_they_were(rows: pa.RecordBatch) -> None:
    assert is_plain(rows.schema)
    received = sent(rows)
    if received is None:
        assert any(pa.types.is_large_list(kind) for kind in rows.schema.types), "numbers can always be sent"
        return
    received.validate(full=True)
    assert received.equals(rows, check_metadata=True)


def test_a_slice_sends_only_its_own_memory() -> None:
    rows = pa.record_batch({"a": np.arange(100_000), "l": pa.array([[1]] * 100_000, pa.large_list(pa.int64()))})
    parts = memory_of(rows.slice(0, 10))
    assert parts is not None
    assert sum(map(len, parts)) < 1000


@pytest.mark.parametrize(
    "column",
    [pa.array([1, None]), pa.array([[1], None], pa.large_list(pa.int64())),
     pa.array([[1], [None]], pa.large_list(pa.int64()))],
)  # fmt: skip
def test_nulls_are_not_sent_so(column: pa.Array) -> None:
    assert memory_of(pa.record_batch({"a": column})) is None


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.bool_(), pa.list_(pa.int64()), pa.large_list(pa.string()), pa.timestamp("us"),
     pa.dictionary(pa.int8(), pa.int64()), pa.large_list(pa.large_list(pa.int64())), pa.struct({"a": pa.int64()})],
)  # fmt: skip
def test_other_types_are_not_plain(kind: pa.DataType) -> None:
    assert not is_plain(pa.schema({"a": pa.int64(), "b": kind}))


def test_rows_without_columns_are_not_plain() -> None:
    assert not is_plain(pa.schema([]))
