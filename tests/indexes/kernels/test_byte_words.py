"""Comparing byte strings by words gives the same order as Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from indexes.kernels.byte_words import leading_words, order_of_bytes
from tests.indexes.generated import without_deadline

TEXTS = st.text("a\xff\x00", max_size=20).map(lambda text: text.encode("latin-1"))


@given(TEXTS, TEXTS, TEXTS, st.integers(0, 3))
def test_the_order_is_that_of_python(prefix: bytes, one: bytes, other: bytes, before: int) -> None:
    one, other = prefix + one, prefix + other
    a = np.frombuffer(b"x" * before + one + b"y", np.uint8)
    b = np.frombuffer(b"z" + other, np.uint8)
    expected = (one > other) - (one < other)
    assert order_of_bytes(a, before, len(one), b, 1, len(other)) == expected


@without_deadline
@given(st.lists(st.binary(max_size=12), min_size=2, max_size=20))
def test_leading_words_never_fall_as_values_rise(texts: list[bytes]) -> None:
    # As in a slice of a larger column, offsets need not begin at 0.
    offsets = np.cumsum([7, *(len(text) for text in sorted(texts))])
    words = leading_words(np.frombuffer(b"skipped" + b"".join(sorted(texts)), np.uint8), offsets)
    assert (words[1:] >= words[:-1]).all()
