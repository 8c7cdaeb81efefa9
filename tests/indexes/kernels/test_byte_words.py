"""Byte strings compared by words give the order that Python gives."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from indexes.kernels.byte_words import order_of_bytes

TEXTS = st.text("a\xff\x00", max_size=20).map(lambda text: text.encode("latin-1"))


@given(TEXTS, TEXTS, TEXTS, st.integers(0, 3))
def test_the_order_is_that_of_python(prefix: bytes, one: bytes, other: bytes, before: int) -> None:
    one, other = prefix + one, prefix + other
    a = np.frombuffer(b"x" * before + one + b"y", np.uint8)
    b = np.frombuffer(b"z" + other, np.uint8)
    expected = (one > other) - (one < other)
    assert order_of_bytes(a, before, len(one), b, 1, len(other)) == expected
