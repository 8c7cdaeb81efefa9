from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from operators import CountWindow, TimeWindow, UnboundedWindow
from operators.query.windows import Window
from operators.routing.key_ordinals import KeyOrdinals

Key = tuple[Any, ...]
GREATEST = 2**63 - 1


def first_live(window: CountWindow, n: int) -> int:
    return max(0, math.ceil(Fraction(n - window.size, window.slide)) * window.slide)


class Judge:
    """The law for windows per key, row by row over the whole past."""

    def __init__(self, windows: tuple[Window, Window], steps: list[list[tuple[int, Key, Key]]]) -> None:
        # (seq, side, key, position, ordinal) of every row in every role, in the total order
        self.rows: list[tuple[int, int, Key, int, int]] = []
        self.windows = windows
        counts: tuple[list[Key], list[Key]] = ([], [])
        for seq, (roles, *keys) in enumerate(row for step in steps for row in step):
            for side in (0, 1):
                if roles in (side, 2):
                    past = counts[side]
                    self.rows.append((seq, side, keys[side], len(past), past.count(keys[side])))
                    past.append(keys[side])

    def before(self, side: int, seq: int) -> list[tuple[int, int, Key, int, int]]:
        return [row for row in self.rows if row[1] == side and row[0] < seq]

    def is_live(self, side: int, ordinal: int, key: Key, seq: int) -> bool:
        """Whether a row is live at a row of its own key."""
        window = self.windows[side]
        if not isinstance(window, CountWindow) or not window.per_key:
            return True
        n = sum(row[2] == key for row in self.before(side, seq))
        return ordinal >= first_live(window, n)

    def expiry(self, side: int, position: int) -> int | None:
        """The seq of the first row of its key, of either side, at which a row is not live."""
        [(own, _, key, _, ordinal)] = [row for row in self.rows if row[1] == side and row[3] == position]
        if None in key:
            return None
        later = [row[0] for row in self.rows if row[0] > own and row[2] == key]
        return next((seq for seq in later if not self.is_live(side, ordinal, key, seq)), None)


windows = st.one_of(
    st.builds(CountWindow, st.integers(1, 4), st.integers(1, 5), st.just(True)),
    st.builds(CountWindow.tumbling, st.integers(1, 4), st.just(True)),
    st.sampled_from([CountWindow(3), TimeWindow(4), UnboundedWindow()]),
)
keys = st.tuples(st.sampled_from([None, 0, 1, 2]), st.sampled_from(["", "a", None, "bb"]))


@given(
    st.tuples(windows, windows),
    st.booleans(),
    st.lists(st.lists(st.tuples(st.integers(0, 1), keys, keys), max_size=12), max_size=6),
    st.tuples(st.booleans(), st.booleans()),
)
def test_ordinals_follow_the_law_for_windows_per_key(
    pair: tuple[Window, Window],
    self_join: bool,
    drawn: list[list[tuple[int, Key, Key]]],
    expiring: tuple[bool, bool],
) -> None:
    steps = [[(2 if self_join else side, left, right) for side, left, right in step] for step in drawn]
    judge = Judge(pair, steps)
    ordinals = KeyOrdinals(pair, (["a", "b"], ["c", "d"]), expiring)
    types = ((pa.int32(), pa.string()), (pa.float64(), pa.large_string()))  # equal by value, not by type
    expired: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    seq = 0
    for step in steps:
        roles = [
            [(seq + i, (left, right)[side]) for i, (role, left, right) in enumerate(step) if role in (side, 2)]
            for side in (0, 1)
        ]
        seq += len(step)
        columns = tuple(
            [pa.array([key[part] for _, key in rows], types[side][part]) for part in (0, 1)] if rows else []
            for side, rows in enumerate(roles)
        )
        seqs = tuple(np.array([at for at, _ in rows], np.int64) for rows in roles)
        found = ordinals.add(columns, seqs)  # type: ignore[arg-type]
        ordinals.check_invariants()
        for side, rows in enumerate(roles):
            got = found[side]
            valid = got.ordinals.mask()
            for i, (at, key) in enumerate(rows):
                assert valid[i] == (None not in key)
                if None in key:
                    assert got.asked.low[i] > got.asked.high[i]
                    continue
                [own] = [row[4] for row in judge.rows if row[0] == at and row[1] == side]
                assert got.ordinals.values[i] == own
                assert got.asked.high[i] == GREATEST
                for _, _, other_key, position, ordinal in judge.before(1 - side, at):
                    if other_key == key:
                        live = judge.is_live(1 - side, ordinal, key, at)
                        assert (ordinal >= got.asked.low[i]) == live
                        assert not live or position >= got.first[i]
            assert got.first.tolist() == sorted(got.first.tolist())
            expired[side].extend(zip(got.expired.tolist(), got.places.tolist(), strict=True))
            assert got.places.tolist() == sorted(got.places.tolist())
    for side in (0, 1):
        rows_of = [row for row in judge.rows if row[1] == side]
        places = {row[3]: judge.expiry(side, row[3]) for row in rows_of}
        want = [(position, place) for position, place in places.items() if place is not None]
        assert sorted(expired[side]) == (sorted(want) if expiring[side] else [])


def test_what_can_be_met_no_more_is_forgotten() -> None:
    ordinals = KeyOrdinals((CountWindow(3, per_key=True), CountWindow(5, 5, True)), (["k"], ["k"]))
    step = 10_000
    for number in range(30):
        values = pa.array(np.arange(step) % 7)
        seqs = np.arange(2 * step) + 2 * step * number
        left, right = ordinals.add(([values], [values]), (seqs[0::2], seqs[1::2]))
    assert ordinals.live[0] > 30 * step - 50
    assert ordinals.live[1] > 30 * step - 100
    assert ordinals.nbytes < 1_000_000
    assert ordinals.keys == 7
    assert left.first[-1] > 30 * step - 100
    assert not len(right.expired)


def test_a_key_that_falls_silent_keeps_its_rows() -> None:
    ordinals = KeyOrdinals((CountWindow(2, per_key=True), CountWindow(2, per_key=True)), (["k"], ["k"]))
    ordinals.add(([pa.array(["silent"])], []), (np.array([0]), np.array([], np.int64)))
    for number in range(5):
        ordinals.add(([pa.array(["busy"] * 100)], []), (np.arange(100) + 1 + 100 * number, np.array([], np.int64)))
    assert ordinals.live == (0, 0)


def test_a_block_that_expires_at_once_is_listed_whole() -> None:
    ordinals = KeyOrdinals((CountWindow.tumbling(1000, True), UnboundedWindow()), (["k"], ["k"]), (True, False))
    for number in range(2):
        first = 600 * number
        left, _ = ordinals.add(([pa.array([1] * 600)], []), (np.arange(600) + first, np.array([], np.int64)))
    assert left.expired.tolist() == list(range(1000))
    assert set(left.places.tolist()) == {1001}
