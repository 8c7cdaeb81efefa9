"""Strings and binary as keys: exact whatever their leads and hashes have in common."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import operators.results.faithful_hashes
import operators.values.text_keys
from operators import CountWindow, StreamJoin
from operators.results.faithful_hashes import FaithfulHashes
from operators.results.text_settling import Texts

WORDS = ["", "a", "b", "ab", "interlace", "interlaced", "interlacex", "interval", None]
TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]


def lengths(data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """A hash that collides: the length of the text, of which four are of one length."""
    return np.diff(offsets).astype(np.int64)


HOLDS: dict[str, Callable[[str, str], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, ">=": operator.ge, "both": operator.eq,
}  # fmt: skip


def expected(left: list[str | None], right: list[str | None], window: int, on: str) -> list[tuple[int, int]]:
    def match(row: int, mate: int) -> bool:
        one, other = left[row], right[mate]
        return one is not None and other is not None and HOLDS[on](one, other)

    pairs: list[tuple[int, int]] = []
    for row in range(max(len(left), len(right))):
        # the left row comes first at each time, for its source's name does
        if row < len(left):
            before = min(row, len(right))
            pairs += [(row, mate) for mate in range(max(0, before - window), before) if match(row, mate)]
        if row < len(right):
            before = min(row + 1, len(left))
            pairs += [(mate, row) for mate in range(max(0, before - window), before) if match(mate, row)]
    return pairs


CONDITIONS = {on: f"R.s {on} S.s" for on in ("=", "!=", "<", ">=")} | {"both": "R.s <= S.s AND R.s >= S.s"}
TEXT = st.lists(st.sampled_from(WORDS), max_size=25)


@pytest.mark.parametrize("colliding", [False, True])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(left=TEXT, right=TEXT, on=st.sampled_from(list(CONDITIONS)), kinds=st.tuples(*[st.sampled_from(TYPES)] * 2))
def test_every_comparison_of_texts_is_that_of_python(
    colliding: bool,
    left: list[str | None],
    right: list[str | None],
    on: str,
    kinds: tuple[pa.DataType, pa.DataType],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        if colliding:
            patched.setattr(operators.values.text_keys, "hashes_of", lengths)
            patched.setattr(operators.results.faithful_hashes, "hashes_of", lengths)
            patched.setattr(operators.results.faithful_hashes, "LEAST_ROWS", 3)
        tables = {}
        for name, texts, kind in zip("RS", (left, right), kinds, strict=True):
            ids = pa.array(range(len(texts)), pa.int64())
            tables[name] = pa.table({"id": ids, "s": pa.array(texts, pa.string()).cast(kind)})
        join = StreamJoin("R", "S", CONDITIONS[on], CountWindow(6), select=["R.id", "S.id"], step_rows=4)
        found = join.collect(tables)
        pairs = list(zip(found["R.id"].to_pylist(), found["S.id"].to_pylist(), strict=True))
        assert pairs == expected(left, right, 6, on)


class Held:
    def __init__(self, *sides: list[str]) -> None:
        self.sides = sides

    def texts(self, side: int, column: str) -> Texts:
        data = "".join(self.sides[side]).encode()
        ends = np.cumsum([0, *map(len, self.sides[side])])
        return Texts(np.frombuffer(data, np.uint8), ends, 0, 0, np.zeros(0, np.int64))


def batch(*texts: str) -> pa.RecordBatch:
    return pa.record_batch({"s": pa.array(texts)})


def test_hashes_hold_until_two_texts_share_one_and_again_when_they_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators.results.faithful_hashes, "hashes_of", lengths)
    monkeypatch.setattr(operators.results.faithful_hashes, "LEAST_ROWS", 2)
    held = Held(["a", "bb"], [])
    hashes = FaithfulHashes(("s", "s"), held)
    holds = [hashes.hold]
    hashes.take(1, batch("a", "bb"))
    holds.append(hashes.hold)
    hashes.take(0, batch("b"))
    holds.append(hashes.hold)
    held.sides = (["a", "bb"], ["ccc"])
    for _ in range(9):
        hashes.take(1, batch("ccc"))
    holds.append(hashes.hold)
    assert holds == [True, True, False, True]
