"""The size of rows when their values are written out, computed without writing them out."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from topology.checks.written_out import repeats_values, written_out_bytes

LONG = "x" * 1000


def size(column: pa.Array) -> int:
    assert repeats_values(column.type)
    column.validate(full=True)
    return written_out_bytes(pa.record_batch({"c": column}))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()], ids=str)
def test_each_use_of_a_dictionary_value_counts(kind: pa.DataType) -> None:
    words = pa.array([LONG, "ab"], kind)
    column = pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, None], pa.int8()), words)
    assert size(column) == 2 * 1000 + 2


def test_each_row_of_a_run_counts() -> None:
    assert size(pa.RunEndEncodedArray.from_arrays(pa.array([3, 5], pa.int32()), pa.array([LONG, "ab"]))) == 3 * 1000 + 4
    assert size(pc.run_end_encode(pa.array([1, 1, 1, 2], pa.int64()))) == 4 * 8


def test_views_count_by_what_they_show() -> None:
    assert size(pa.array([LONG, "ab", None], pa.string_view())) == 1000 + 2 + 3 * 16
    values = pa.array(np.arange(100))
    lists = pa.ListViewArray.from_arrays(pa.array([0, 0, 50], pa.int32()), pa.array([100, 100, 10], pa.int32()), values)
    assert size(lists) == 210 * 8 + 3 * 8


def test_nesting_multiplies() -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, 0, 0], pa.int8()), pa.array([LONG]))
    lists = pa.ListViewArray.from_arrays(pa.array([0, 0], pa.int32()), pa.array([3, 3], pa.int32()), words)
    assert size(lists) == 6 * 1000 + 2 * 8
    assert size(pa.StructArray.from_arrays([words, pa.array([1, 2, 3])], ["w", "n"])) == 3 * 1000 + 3 * 8
    assert size(pa.FixedSizeListArray.from_arrays(words, 3)) == 3 * 1000


def test_each_row_of_a_dense_union_counts() -> None:
    column = pa.UnionArray.from_dense(
        pa.array([0, 0, 1], pa.int8()), pa.array([0, 0, 0], pa.int32()), [pa.array([LONG]), pa.array([5])]
    )
    assert size(column) == 2 * 1000 + 8


def test_plain_columns_do_not_repeat_values() -> None:
    for kind in (pa.int64(), pa.string(), pa.list_(pa.string()), pa.map_(pa.string(), pa.int64()), pa.null()):
        assert not repeats_values(kind)
    batch = pa.record_batch({"plain": pa.array([LONG]), "folded": pa.array(["a"]).dictionary_encode()})
    assert written_out_bytes(batch) == 1
