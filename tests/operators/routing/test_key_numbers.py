"""Numbers of keys that are single whole numbers, which a table looks up, beside those that a hash finds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from operators.routing import key_dictionary
from operators.routing.key_numbers import KeyNumbers


@pytest.mark.parametrize("places", [1, 64, 1 << 16])
def test_equal_keys_have_one_number_in_the_order_of_their_appearance(
    places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides, several types, nulls between, keys that come nearer and farther, and some at the ends of int64."""
    monkeypatch.setattr(key_dictionary, "MOST_PLACES", places)
    chance = np.random.default_rng(places)
    for far in (0, 100, 2**62):
        numbers, known = KeyNumbers((["k"], ["k"])), dict[int, int]()
        for step in range(40):
            low = chance.integers(-(step**2), step**2 + 1)
            values = chance.integers(low, low + 30, 25)
            if far and step > 20:
                values[::9] += chance.choice([-far, far])
            kind = pa.float64() if step % 7 == 3 else pa.int16() if step % 7 == 5 and far < 2**62 else pa.int64()
            column = pa.array(values).cast(kind, safe=False)
            wanted = [known.setdefault(int(value), len(known)) for value in column.to_pylist()]
            if step % 5 == 4:
                column, wanted = pa.concat_arrays([pa.nulls(1, kind), column]), [-1, *wanted]
            assert numbers.of(step % 2, [column], len(column)).tolist() == wanted
            assert len(numbers) == len(known)
            numbers.check_invariants()
