"""Rows with a column of every Arrow type that a payload may have, for tests that carry them somewhere."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


class Celsius(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(pa.float64(), "test.celsius")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Celsius:
        return cls()


WORDS = ["", "a", "é", "a much longer string than a view holds in place"]
LISTS: list[Any] = [[], [1], [2, None, 3]]
POOLS: list[tuple[list[pa.DataType], list[Any]]] = [
    ([pa.type_for_alias(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)], [0, 1, 100]),
    ([pa.float16(), pa.float32(), pa.float64()], [0.5, -1.0, float("inf")]),
    ([pa.bool_()], [True, False]),
    ([pa.null()], [None]),
    ([pa.string(), pa.large_string(), pa.string_view()], WORDS),
    ([pa.binary(), pa.large_binary(), pa.binary_view()], [word.encode() for word in WORDS]),
    ([pa.binary(3)], [b"abc", b"\x00\x01\x02"]),
    ([pa.binary(0)], [b""]),
    (
        [pa.decimal32(5, 1), pa.decimal64(12, 1), pa.decimal128(30, 1), pa.decimal256(60, 1)],
        [Decimal("0.1"), Decimal("-12.0")],
    ),
    ([pa.date32(), pa.date64()], [date(1970, 1, 1), date(2026, 1, 1)]),
    ([pa.timestamp("s"), pa.timestamp("ns")], [datetime(1970, 1, 1), datetime(2026, 1, 1)]),
    ([pa.duration("us")], [timedelta(0), timedelta(1)]),
    ([pa.month_day_nano_interval()], [pa.MonthDayNano([1, 2, 3]), pa.MonthDayNano([0, 0, 0])]),
    ([make(pa.int64()) for make in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)], LISTS),
    ([pa.list_(pa.int64(), 2)], [[1, 2], [None, 4]]),
    ([pa.list_(pa.string_view())], [[], ["a", None, WORDS[-1]]]),
    ([pa.struct([("a", pa.int64()), ("b", pa.string_view())])], [{"a": 1, "b": "x"}, {"a": None, "b": None}]),
    ([pa.map_(pa.string(), pa.int64())], [[], [("a", 1), ("b", None)]]),
    ([pa.map_(pa.string(), pa.list_(pa.binary_view()))], [[], [("a", [b"1", None])]]),
    ([pa.dictionary(pa.int8(), pa.string())], WORDS),
    ([pa.dictionary(pa.int32(), pa.int64())], [1, 2, 3]),
    ([pa.list_(pa.dictionary(pa.int8(), pa.string()))], [[], ["a", "b", None]]),
    ([pa.run_end_encoded(pa.int32(), pa.string())], WORDS),
    ([pa.uuid()], [b"0" * 16, b"1" * 16]),
    ([Celsius()], [0.5, 36.6]),
    ([pa.sparse_union([pa.field("n", pa.int64()), pa.field("s", pa.string())])], [(0, 5), (1, "x")]),
    ([pa.dense_union([pa.field("n", pa.int64()), pa.field("s", pa.string())])], [(0, 5), (1, "x")]),
]


def array_of(kind: pa.DataType, cells: list[Any]) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(cells, kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(pa.array(cells, kind.value_type), run_end_type=kind.run_end_type)
    if pa.types.is_union(kind):
        codes = pa.array([0 if cell is None else cell[0] for cell in cells], pa.int8())
        children = [
            pa.array([cell[1] if cell is not None and cell[0] == n else None for cell in cells], kind.field(n).type)
            for n in (0, 1)
        ]
        if kind.mode == "sparse":
            return pa.UnionArray.from_sparse(codes, children, ["n", "s"])
        places = pa.array(range(len(cells)), pa.int32())
        return pa.UnionArray.from_dense(codes, places, children, ["n", "s"])
    return pa.array(cells, kind)


def every_type(seed: int, rows: int = 12) -> pa.RecordBatch:
    """Return rows with a number `n` and one column per type, with nulls; values and dictionaries depend on the seed.

    The columns are slices: their first value is not the first of their buffers.
    """
    columns: dict[str, pa.Array] = {"n": pa.array(range(rows), pa.int64())}
    for types, pool in POOLS:
        for kind in types:
            cells = [None if (row + seed) % 5 == 4 else pool[(row + seed) % len(pool)] for row in range(-2, rows)]
            columns[f"c{len(columns)}"] = array_of(kind, cells).slice(2)
    return pa.record_batch(columns)
