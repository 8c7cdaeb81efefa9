"""An equality divides the work among elements, and nothing is lost or found twice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import Interval, Keys, Live, Observed
from operators import CountWindow, IndexJoin, JoinError, PIMTree, StreamJoin
from operators.engines.index_join.key_share import KeyShare
from operators.protocol.element_rows import ElementRows
from topology import LocalRuntime

KEYS = st.lists(st.sampled_from([None, -1, 0, 1, 2, 3, 7, 2**53]), max_size=30)
TYPES = [pa.int64(), pa.float64(), pa.uint64(), pa.int32(), pa.string(), pa.decimal128(20, 1)]
FITTING = {pa.uint64(): lambda key: key >= 0, pa.int32(): lambda key: abs(key) < 2**31}


def column(keys: list[int | None], kind: pa.DataType) -> pa.Array:
    fits = FITTING.get(kind, lambda key: True)
    values: list[object] = [key if key is not None and fits(key) else None for key in keys]
    if pa.types.is_string(kind):
        values = [None if value is None else str(value) for value in values]
    return pa.array(values, pa.int64()).cast(kind) if pa.types.is_decimal(kind) else pa.array(values, kind)


@settings(max_examples=60)
@given(
    left=KEYS,
    right=KEYS,
    kinds=st.sampled_from([(a, b) for a in TYPES[:4] for b in TYPES[:4]] + [(kind, kind) for kind in TYPES]),
    partitions=st.integers(2, 4),
    index=st.sampled_from(["auto", PIMTree(merge_ratio=0.5), "BPlusTree", "HashIndex"]),
    on=st.sampled_from(["R.k = S.k", "R.k = S.k AND R.id < S.id", "R.id != S.id AND R.k = S.k"]),
)
def test_results_are_those_of_one_element(
    left: list[int | None],
    right: list[int | None],
    kinds: tuple[pa.DataType, pa.DataType],
    partitions: int,
    index: str | PIMTree,
    on: str,
) -> None:
    tables = {
        name: pa.table({"id": pa.array(range(len(keys)), pa.int64()), "k": column(keys, kind)})
        for name, keys, kind in zip("RS", (left, right), kinds, strict=True)
    }

    def collect(engine: IndexJoin) -> pa.Table:
        return StreamJoin("R", "S", on, CountWindow(9), using=engine, step_rows=7).collect(tables, LocalRuntime())

    assert collect(IndexJoin(index, 1, partitions=partitions)).equals(collect(IndexJoin(index, 1)))


def test_each_element_stores_its_share_alone() -> None:
    keys = np.arange(4000)
    table = pa.table({"id": keys, "k": keys})
    join = StreamJoin("R", "S", "R.k = S.k", CountWindow(5000), using=IndexJoin("HashIndex", 1, partitions=4))
    run = join.run({"R": table, "S": table})
    stored = [task.own["left_stored"] for task in run.metrics.of("index-join")]
    assert sum(stored) == 4000
    assert max(stored) < 1300


def test_a_share_of_the_keys_is_as_selective_as_all_of_them() -> None:
    """An index is chosen by what a row meets, which does not depend on how many elements share the keys."""
    keys = np.random.default_rng(4).integers(0, 40, 1024)
    rows = ElementRows(0, np.arange(1024), (Keys(keys),), (Interval(keys, keys),), Live.everything(1024))
    shares = [KeyShare(number, 4, 0) for number in range(4)]
    sampled = [share.sample(share.own(rows)) for share in shares]
    assert sum(len(own[0]) for own, _ in sampled) == sum(len(asked[0]) for _, asked in sampled) == 1024
    matches = [Observed.of(own, asked, 4000 // 4).matches for own, asked in sampled]
    assert np.mean([found or 0.0 for found in matches]) == pytest.approx(4000 / 40, rel=0.2)


def test_without_an_equality_there_is_nothing_to_divide() -> None:
    with pytest.raises(JoinError, match=r"partitions=2 divides the keys of an equality, and `R.k < S.k` has none"):
        StreamJoin("R", "S", "R.k < S.k", CountWindow(9), using=IndexJoin(partitions=2)).plan()
