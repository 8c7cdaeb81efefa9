"""Probe rows that leave a process: what arrives is what was sent, and bounds that say nothing new do not travel."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import Interval, Keys, Live
from operators.protocol.element_rows import ElementRows
from operators.protocol.sides import LEFT
from topology import Batch

FEW = st.sampled_from([-np.inf, -1.0, 0.0, 2.5, np.inf])
WHOLE = st.sampled_from([-(2**63), -1, 0, 7, 2**63 - 1])


@st.composite
def keyed(draw: st.DrawFn, rows: int) -> tuple[Keys, Interval]:
    """Keys and an interval of one dimension; bounds may be the keys' own memory, the same for all rows, or neither."""
    floats = draw(st.booleans())
    values = st.lists(FEW if floats else WHOLE, min_size=rows, max_size=rows)
    kind = np.float64 if floats else np.int64
    own = np.array(draw(values), kind)
    valid = None if draw(st.booleans()) else np.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), bool)
    bounds = []
    for _ in range(2):
        form = draw(st.sampled_from(["own", "same", "free"]))
        same = draw(FEW if floats else WHOLE)
        bounds.append(
            own if form == "own" else np.full(rows, same, kind) if form == "same" else np.array(draw(values), kind)
        )
    return Keys(own, valid), Interval(bounds[0], bounds[1], draw(st.booleans()))


@st.composite
def element_rows(draw: st.DrawFn) -> ElementRows:
    rows = draw(st.integers(0, 6))
    dimensions = [draw(keyed(rows)) for _ in range(draw(st.integers(1, 3)))]
    numbers = np.arange(rows, dtype=np.int64)
    keys, intervals = zip(*dimensions, strict=True)
    return ElementRows(3, numbers + 10, keys, intervals, Live(numbers, numbers * 2))


def arrived(batch: Batch, rows: ElementRows) -> ElementRows:
    packed = Batch(batch.stream, batch.rows, first=batch.first)
    return ElementRows.from_batch(packed, [interval.negated for interval in rows.intervals])


def assert_same(found: ElementRows, sent: ElementRows) -> None:
    assert found.first == sent.first
    for mine, theirs in (
        (found.seq, sent.seq), (found.live.start, sent.live.start), (found.live.end, sent.live.end),
    ):  # fmt: skip
        np.testing.assert_array_equal(mine, theirs)
    for got, given_keys in zip(found.keys, sent.keys, strict=True):
        valid = np.ones(len(given_keys), bool) if given_keys.valid is None else given_keys.valid
        np.testing.assert_array_equal(np.ones(len(valid), bool) if got.valid is None else got.valid, valid)
        np.testing.assert_array_equal(got.values[valid], given_keys.values[valid])
    for interval, expected in zip(found.intervals, sent.intervals, strict=True):
        assert interval.negated == expected.negated
        for one, other in ((interval.low, expected.low), (interval.high, expected.high)):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


@given(rows=element_rows())
def test_rows_arrive_as_they_were(rows: ElementRows) -> None:
    assert_same(arrived(rows.to_batch(LEFT), rows), rows)


@given(rows=element_rows())
def test_one_dimension_travels_alone(rows: ElementRows) -> None:
    last = len(rows.keys) - 1
    part = ElementRows(rows.first, rows.seq, rows.keys[last:], rows.intervals[last:], rows.live)
    assert_same(arrived(rows.to_batch_of_dimension(LEFT, last), part), part)


@pytest.mark.parametrize("values", [np.arange(5.0), np.arange(5)])
def test_an_open_end_and_the_own_key_do_not_travel(values: np.ndarray) -> None:
    end = np.inf if values.dtype == np.float64 else 2**63 - 1
    interval = Interval(values, np.full(5, end, values.dtype), False)
    rows = ElementRows(0, np.arange(5), (Keys(values),), (interval,), Live(np.arange(5), np.arange(5)))
    packed: pa.RecordBatch = rows.to_arrow()
    assert packed.column_names == ["key0", "first", "end", "seq"]
    assert_same(arrived(rows.to_batch(LEFT), rows), rows)


def test_equal_values_that_are_no_end_travel_so_that_the_schema_stays() -> None:
    interval = Interval(np.full(2, 3.0), np.full(2, 4.0), False)
    rows = ElementRows(0, np.arange(2), (Keys(np.zeros(2)),), (interval,), Live(np.arange(2), np.arange(2)))
    assert rows.to_arrow().column_names == ["key0", "low0", "high0", "first", "end", "seq"]
