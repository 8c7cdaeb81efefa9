"""The hash behind fields grouping: the same everywhere, for ever, and the same for equal values."""

import subprocess
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topology.graph.hashing import can_hash, stable_hash

quick = settings(max_examples=30, deadline=None)

INTEGER_TYPES = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]

# Worked out with a few lines of plain Python, apart from the code under test. If one of these changes, keys move
# to other tasks than those that hold their state: never change them.
KNOWN: list[tuple[Any, pa.DataType, int]] = [
    (0, pa.int64(), 0),
    (1, pa.int64(), 8841707400507832957),
    (-1, pa.int64(), 5476333178966447588),
    (2**63 - 1, pa.int64(), 8281782516245842002),
    (True, pa.bool_(), 8841707400507832957),
    (0.0, pa.float64(), 0),
    (1.0, pa.float64(), 8873853812651464650),
    (0.1, pa.float64(), 12965590068001595435),
    ("", pa.string(), 9886184608339236366),
    ("a", pa.string(), 10981764331140867300),
    ("interlace", pa.string(), 8022065371577811303),
    ("naïve", pa.string(), 15788989781796348090),
    (b"\xff", pa.binary(), 764640293394975236),
    (None, pa.string(), 17504965309670356325),
    (None, pa.int64(), 17504965309670356325),
]


def one(value: Any, kind: pa.DataType) -> int:
    return int(stable_hash([pa.array([value], kind)])[0])


@pytest.mark.parametrize(("value", "kind", "expected"), KNOWN)
def test_known_answers_never_change(value: Any, kind: pa.DataType, expected: int) -> None:
    assert one(value, kind) == expected


def test_known_answers_of_several_columns_and_of_another_seed() -> None:
    number, letter = pa.array([1]), pa.array(["a"])
    assert stable_hash([number, letter])[0] == 6514604200144053591
    assert stable_hash([letter, number])[0] == 15141548339922688468
    assert stable_hash([letter], seed=1)[0] == 6019661151011953434


def test_another_process_computes_the_same() -> None:
    program = "from topology.graph.hashing import *; print(stable_hash([pa.array(['interlace'])])[0])"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(answer.stdout) == 8022065371577811303


@pytest.mark.parametrize("value", [0, 1, 127])
def test_equal_integers_of_any_width_hash_alike(value: int) -> None:
    assert len({one(value, kind) for kind in INTEGER_TYPES}) == 1


@pytest.mark.parametrize("value", [-1, -128])
def test_equal_negative_integers_of_any_width_hash_alike(value: int) -> None:
    assert len({one(value, kind) for kind in INTEGER_TYPES[:4]}) == 1


@pytest.mark.parametrize("value", [0.5, -2.25, float("inf")])
def test_equal_floats_of_any_width_hash_alike(value: float) -> None:
    assert len({one(value, kind) for kind in (pa.float16(), pa.float32(), pa.float64())}) == 1


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_negative_zero_hashes_as_zero(kind: pa.DataType) -> None:
    assert one(-0.0, kind) == one(0.0, kind)


def test_every_nan_hashes_alike() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001], dtype=np.uint64)
    assert len(set(stable_hash([pa.array(bits.view(np.float64))]).tolist())) == 1


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()])
def test_text_hashes_alike_in_every_layout(kind: pa.DataType) -> None:
    words = ["", "a", "a longer word than fits into a view", None]
    assert stable_hash([pa.array(words).cast(kind)]).tolist() == stable_hash([pa.array(words)]).tolist()


def test_fixed_size_binary_hashes_as_its_bytes() -> None:
    assert one(b"\xff\x00", pa.binary(2)) == one(b"\xff\x00", pa.binary())


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["zero", "one", None, "three", "", "five"]),
        pa.array(["zero", "one", None, "three", "", "five"]).dictionary_encode(),
        pa.array([b"zero", b"one", None, b"three", b"", b"five"], pa.large_binary()),
        pa.array([0, 1, None, 3, 4, 5], pa.int16()),
        pa.array([0.0, 1.5, None, -0.0, float("nan"), 5.0], pa.float32()),
        pa.array([True, False, None, True, False, True]),
        pa.array([0, 1, None, 3, 4, 5], pa.timestamp("us", "UTC")),
        pa.array([0, 1, None, 3, 4, 5], pa.date32()),
        pa.array([Decimal("1.50"), Decimal("2.25"), None, Decimal("0.00"), Decimal("1.50"), Decimal("9.99")]),
    ],
    ids=lambda column: str(column.type).split("<")[0],
)
def test_a_slice_hashes_as_the_rows_it_shows(column: pa.Array) -> None:
    whole = stable_hash([column]).tolist()
    for start in range(len(column) + 1):
        for length in range(len(column) - start + 1):
            assert stable_hash([column.slice(start, length)]).tolist() == whole[start : start + length]


def test_a_dictionary_hashes_as_its_values() -> None:
    words = pa.array(["b", "a", None, "b"])
    assert stable_hash([words.dictionary_encode()]).tolist() == stable_hash([words]).tolist()


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ns"), pa.timestamp("s", "UTC"), pa.date32(), pa.date64(), pa.time32("s"), pa.duration("us")]
)
def test_times_hash_as_their_number(kind: pa.DataType) -> None:
    storage = pa.int32() if kind.bit_width == 32 else pa.int64()
    numbers = pa.array([86_400_000, None, 0], storage)
    assert stable_hash([numbers.cast(kind)]).tolist() == stable_hash([numbers]).tolist()


def test_null_differs_from_every_value_it_could_be_stored_as() -> None:
    assert one(None, pa.string()) != one("", pa.string())
    assert one(None, pa.int64()) != one(0, pa.int64())
    assert one(None, pa.null()) == one(None, pa.string())


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.month_day_nano_interval()])
def test_nested_columns_are_refused(kind: pa.DataType) -> None:
    assert not can_hash(kind)
    with pytest.raises(TypeError, match="cannot be hashed"):
        stable_hash([pa.nulls(1, kind)])


def test_hashing_no_column_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one column"):
        stable_hash([])


@quick
@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1))
def test_the_hash_of_a_row_does_not_depend_on_its_neighbours(values: list[int | None]) -> None:
    alone = [one(value, pa.int64()) for value in values]
    assert stable_hash([pa.array(values, pa.int64())]).tolist() == alone


def test_consecutive_keys_spread_evenly() -> None:
    buckets = np.bincount((stable_hash([pa.array(np.arange(100_000))]) % np.uint64(7)).astype(np.int64))
    assert buckets.min() > 0.95 * 100_000 / 7


@quick
@given(st.lists(st.one_of(st.none(), st.binary(max_size=40)), min_size=1, max_size=60))
def test_a_string_hashes_alike_alone_and_among_others(strings: list[bytes | None]) -> None:
    """Few strings are hashed one by one, many together."""
    together = stable_hash([pa.array(strings, pa.binary())])
    assert together.tolist() == [one(each, pa.binary()) for each in strings]


def test_hashing_strings_does_not_import_numba() -> None:
    program = "import sys; from topology.graph.hashing import *; stable_hash([pa.array(['a'] * 50)]); "
    program += "sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
