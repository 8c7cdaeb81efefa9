from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.query.errors import PredicateError
from operators.routing.key_dictionary import ByteDictionary, WordDictionary
from operators.routing.key_words import key_words

WHOLE = [0, 1, -1, 3, 25, 250, 127, -128, 2**31, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, 2**63, 2**64 - 1, 2**64]
FLOATS = [*map(float, WHOLE), -0.0, 0.5, 2.5, 2.0**65, float("inf"), float("-inf"), float("nan"), 5e-324]
DECIMALS = [*map(Decimal, WHOLE), Decimal("2.5"), Decimal("2.50"), Decimal("-2.5"), Decimal("0.25"), Decimal(10**30)]
DECIMALS += [Decimal(10**30) + Decimal("0.1"), -Decimal(10**30), Decimal(2**63) / 100, -Decimal(2**63) / 100]

NUMBERS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False]),
    (pa.int8(), WHOLE),
    (pa.int32(), WHOLE),
    (pa.int64(), WHOLE),
    (pa.uint8(), WHOLE),
    (pa.uint64(), WHOLE),
    (pa.float16(), [0.0, -0.0, 1.0, 2.5, float("nan")]),
    (pa.float32(), [0.0, -0.0, 3.0, 2.5, float(2**24), float("inf")]),
    (pa.float64(), FLOATS),
    (pa.decimal128(18, 2), DECIMALS),
    (pa.decimal128(38, 0), DECIMALS),
    (pa.decimal128(38, 4), DECIMALS),
    (pa.decimal256(76, 30), DECIMALS),
    (pa.decimal128(5, -1), [Decimal(0), Decimal(250), Decimal(-120)]),
    (pa.dictionary(pa.int8(), pa.int64()), WHOLE),
]
MOMENTS = [dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31), dt.datetime(1969, 12, 31, 23, 59, 58, 500_000)]
MOMENTS += [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31), dt.datetime(2024, 2, 29, 12, 0, 0, 1)]
INSTANTS: list[tuple[pa.DataType, list[Any]]] = [
    *((pa.timestamp(unit), MOMENTS) for unit in ("s", "ms", "us", "ns")),
    (pa.date32(), [moment.date() for moment in MOMENTS]),
    (pa.date64(), [moment.date() for moment in MOMENTS]),
]
LENGTHS = [dt.timedelta(0), dt.timedelta(seconds=-1), dt.timedelta(milliseconds=1500), dt.timedelta(microseconds=1)]
DURATIONS: list[tuple[pa.DataType, list[Any]]] = [(pa.duration(unit), LENGTHS) for unit in ("s", "ms", "us", "ns")]
TEXTS: list[tuple[pa.DataType, list[Any]]] = [
    (kind, ["", "a", "b", "ab", "a\0", "\0", "é", "x" * 40, "x" * 39 + "y"])
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()))
]
BINARY: list[tuple[pa.DataType, list[Any]]] = [
    (pa.binary(), [b"", b"\0", b"ab", b"\xff\xfe"]),
    (pa.large_binary(), [b"", b"\0", b"ab", b"\xff\xfe"]),
    (pa.binary(2), [b"ab", b"\xff\xfe", b"\0\0"]),
]


def fitting(kind: pa.DataType, values: list[Any]) -> list[Any]:
    """Those of the values that a column of this type can hold."""
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    kept = []
    for value in values:
        try:
            [back] = pa.array([value], plain).to_pylist()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError, TypeError):
            continue
        if back is not None and (back == value or back != back):
            kept.append(value)
    return kept


def comparable(value: Any) -> Any:
    """What Python compares exactly: a date is midnight of its day."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)
    return value


@pytest.mark.parametrize(
    "family", [NUMBERS, INSTANTS, DURATIONS, TEXTS, BINARY], ids=["numbers", "instants", "durations", "texts", "binary"]
)
def test_words_are_equal_where_values_are(family: list[tuple[pa.DataType, list[Any]]]) -> None:
    dictionary = ByteDictionary()
    columns = []
    for kind, values in family:
        usable = [None, *fitting(kind, values)]
        array = pa.array([None, None, *usable], kind)[2:]  # it begins in the middle of its memory
        words, valid = key_words("k", array, dictionary)
        assert words.shape == (len(usable), 2)
        assert valid.tolist() == [value is not None and value == value for value in usable]
        columns.append((kind, [(v, tuple(w)) for v, w, p in zip(usable, words.tolist(), valid, strict=True) if p]))
    for kind, rows in columns:
        for other_kind, other_rows in columns:
            # A float does not compare with a decimal: that is refused when the types are checked.
            kinds = (kind, other_kind)
            if any(map(pa.types.is_floating, kinds)) and any(map(pa.types.is_decimal, kinds)):
                continue
            for value, words_of_value in rows:
                for other, words_of_other in other_rows:
                    same = comparable(value) == comparable(other)
                    assert (words_of_value == words_of_other) == same, (kind, value, other_kind, other)
    dictionary.check_invariants()


def test_a_column_without_rows_has_no_words() -> None:
    for family in (NUMBERS, INSTANTS, DURATIONS, TEXTS, BINARY):
        for kind, _ in family:
            words, valid = key_words("k", pa.array([], kind), ByteDictionary())
            assert words.shape == (0, 2)
            assert len(valid) == 0


@given(
    st.lists(st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**20), max_value=10**20)),
    st.integers(6, 20),
)
def test_decimals_of_any_scale_are_equal_by_value(values: list[Decimal], scale: int) -> None:
    dictionary = ByteDictionary()
    narrow, _ = key_words("k", pa.array(values, pa.decimal128(38, 6)), dictionary)
    wide, _ = key_words("k", pa.array(values, pa.decimal256(60, scale)), dictionary)
    assert narrow.tolist() == wide.tolist()
    distinct = {Fraction(value) for value in values}
    assert len({tuple(words) for words in narrow.tolist()}) == len(distinct)


def test_a_decimal_too_long_for_any_column_is_refused() -> None:
    kind = pa.decimal256(76, -5)
    with pytest.raises(PredicateError, match="cast it to one of scale 0 or more"):
        key_words("k", pa.array([None], kind), ByteDictionary())


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(-(2**63), 2**63 - 1)), max_size=40), max_size=6))
def test_words_are_numbered_in_the_order_they_are_met(batches: list[list[tuple[int, int]]]) -> None:
    dictionary = WordDictionary(2)
    expected: dict[tuple[int, int], int] = {}
    for batch in batches:
        rows = np.array(batch, np.int64).reshape(-1, 2)
        valid = rows[:, 0] != 5
        numbers = [expected.setdefault(row, len(expected)) if ok else -1 for row, ok in zip(batch, valid, strict=True)]
        assert dictionary.numbers(rows, valid).tolist() == numbers
    assert len(dictionary) == len(expected)
    dictionary.check_invariants()


@given(st.lists(st.lists(st.binary(max_size=60), max_size=30), max_size=6))
def test_bytes_are_numbered_in_the_order_they_are_met(batches: list[list[bytes]]) -> None:
    dictionary = ByteDictionary()
    expected: dict[bytes, int] = {}
    for batch in batches:
        offsets = np.cumsum([0, *map(len, batch)]).astype(np.int64)
        numbers = [expected.setdefault(text, len(expected)) for text in batch]
        data = np.frombuffer(b"".join(batch), np.uint8)
        assert dictionary.numbers(data, offsets, np.ones(len(batch), np.bool_)).tolist() == numbers
    dictionary.check_invariants()


def test_equal_hashes_do_not_make_strings_equal() -> None:
    dictionary = ByteDictionary()
    both = (np.frombuffer(b"a", np.uint8), np.array([0, 1]), np.ones(1, np.bool_))
    assert dictionary.numbers(*both).tolist() == [0]
    dictionary._data[0] = ord("b")  # another string under the hash of "a"
    assert dictionary.numbers(*both).tolist() == [1]


def test_memory_is_that_of_distinct_keys() -> None:
    dictionary = WordDictionary(1)
    for _ in range(100):
        dictionary.numbers(np.arange(50_000).reshape(-1, 1) % 100, np.ones(50_000, np.bool_))
    assert len(dictionary) == 100
    assert dictionary.nbytes < 10_000
