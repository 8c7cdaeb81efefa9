from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.query.errors import JoinError
from operators.results.payload_store import PayloadStore
from tests.operators.every_type import POOLS, array_of

CASES = [pytest.param(kind, pool, id=str(kind)) for kinds, pool in POOLS for kind in kinds]


@settings(max_examples=25, deadline=None)
@pytest.mark.parametrize(("kind", "pool"), CASES)
@given(data=st.data())
def test_any_type_comes_back_as_it_went_in(kind: pa.DataType, pool: list[Any], data: st.DataObject) -> None:
    store = PayloadStore(pa.schema([("c", kind)]))
    rows: list[Any] = []
    base = 0
    cell = st.none() | st.sampled_from(pool)
    for _ in range(data.draw(st.integers(1, 6))):
        batch = array_of(kind, data.draw(st.lists(cell, max_size=9)))
        skip = data.draw(st.integers(0, len(batch)))
        batch = batch.slice(skip)
        store.append(pa.record_batch([batch], schema=store.schema))
        rows += batch.to_pylist()
        if data.draw(st.booleans()):
            base = data.draw(st.integers(base, len(rows)))
            store.drop_before(base)
        nullable = data.draw(st.booleans())
        choices = [*range(base, len(rows)), *([-1] if nullable else [])]
        wanted = data.draw(st.lists(st.sampled_from(choices), max_size=12)) if choices else []
        (found,) = store.take(np.array(wanted, np.int64), nullable=nullable)
        found.validate(full=True)
        assert found.type == kind
        assert found.to_pylist() == [None if p < 0 else rows[p] for p in wanted]
        one = store.take_column("c", np.array(wanted, np.int64), nullable=nullable)
        assert one.to_pylist() == found.to_pylist()


def test_dead_rows_are_freed() -> None:
    store = PayloadStore(pa.schema([("n", pa.int64()), ("s", pa.string()), ("l", pa.list_(pa.int64()))]))
    for number in range(200):
        cells = list(range(number * 100, number * 100 + 100))
        rows = {"n": cells, "s": [f"a rather long string {n}" for n in cells], "l": [[n] for n in cells]}
        store.append(pa.RecordBatch.from_pydict(rows, schema=store.schema))
        store.drop_before(number * 100 - 100)
    assert store.nbytes < 200_000
    last = store.take(np.array([19_999], np.int64))
    assert [column.to_pylist() for column in last] == [[19_999], ["a rather long string 19999"], [[19_999]]]


def test_a_dictionary_that_outgrows_its_indices_is_an_error_only_where_it_shows() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    store = PayloadStore(pa.schema([("c", kind)]))
    for letter in "ab":
        words = pa.array([f"{letter}{n}" for n in range(100)]).dictionary_encode().cast(kind)
        store.append(pa.record_batch([words], schema=store.schema))
    assert store.take(np.array([199, 100]))[0].to_pylist() == ["b99", "b0"]
    with pytest.raises(JoinError, match="column c: one batch of results does not fit its type dictionary"):
        store.take(np.arange(200))
