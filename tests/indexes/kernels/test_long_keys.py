from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import LinearScan, Live, TieredRuns
from indexes.kernels.long_keys import LongInterval, LongKeys
from indexes.one_key import long_key_index
from indexes.one_key.byte_rows import ByteRows
from indexes.one_key.long_key_index import LongKeyIndex
from tests.indexes.generated import without_deadline


def long_keys(texts: list[bytes]) -> LongKeys:
    offsets = np.cumsum([0, *(len(text) for text in texts)])
    return LongKeys.of_bytes(np.frombuffer(b"".join(texts), np.uint8), offsets)


@without_deadline
@given(st.lists(st.binary(max_size=12), min_size=2, max_size=20))
def test_leads_never_fall_as_values_rise(texts: list[bytes]) -> None:
    lead = long_keys(sorted(texts)).lead
    assert (lead[1:] >= lead[:-1]).all()


@without_deadline
@given(st.lists(st.lists(st.binary(max_size=9), max_size=20), max_size=12), st.data())
def test_byte_rows_keep_what_is_asked_for(batches: list[list[bytes]], data: st.DataObject) -> None:
    rows = ByteRows(5)
    held: list[bytes] = []
    below = 5
    for texts in batches:
        # As in the slice of a larger column, offsets need not begin at 0.
        rows.append(long_keys([b"skipped", *texts]).rows(slice(1, len(texts) + 1)))
        held += texts
        below = data.draw(st.integers(below, 5 + len(held)))
        rows.expire(below)
        if data.draw(st.booleans()):
            rows = ByteRows.restore(rows.snapshot())
        _, ends, content = rows.arrays()
        for position in range(below, 5 + len(held)):
            place = position - rows.first_position
            assert content[ends[place] : ends[place + 1]].tobytes() == held[position - 5]
        rows.check_invariants()


def test_bytes_do_not_pile_up() -> None:
    rows = ByteRows()
    texts = [b"x" * 30] * 50
    sizes = []
    for end in range(50, 50_000, 50):
        rows.append(long_keys(texts))
        rows.expire(end - 200)
        sizes.append(rows.nbytes)
    assert max(sizes[100:]) <= max(sizes[:100])


def test_many_candidates_are_settled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_key_index, "CANDIDATES_AT_ONCE", 7)
    index, reference = (LongKeyIndex(within, [0]) for within in (TieredRuns(1), LinearScan()))
    texts = [b"the same beginning %d" % (number % 5) for number in range(40)]
    for one in (index, reference):
        one.insert([long_keys(texts)])
    low, high = long_keys(texts[:9]), long_keys([b"the same beginning 3"] * 9)
    for ends in (dict[str, Any](), {"low_open": True}, {"high_open": True}, {"negated": True}):
        bounds = [LongInterval(low, high, **ends)]
        found, expected = index.probe(bounds, Live.everything(9)), reference.probe(bounds, Live.everything(9))
        np.testing.assert_array_equal(found.offsets, expected.offsets)
        np.testing.assert_array_equal(found.positions, expected.positions)
        total = len(found.positions)
        assert index.probe_within(total, bounds, Live.everything(9)) is not None
        assert index.probe_within(total - 1, bounds, Live.everything(9)) is None


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="one entry more"):
        LongKeys(np.zeros(2, np.int64), np.empty(0, np.uint8), np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="needs a bound"):
        LongInterval(None, None)
    with pytest.raises(ValueError, match="same length"):
        LongInterval(long_keys([b"a"]), long_keys([b"a", b"b"]))
