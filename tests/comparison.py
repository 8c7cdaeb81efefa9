"""Comparing result tables exactly: as multisets with counts, or row by row with names and types.

Floats compare by their bits, except that any NaN equals any NaN: -0.0 and 0.0 are one key for a join
but two values in its result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

_SHOWN = 10


def _exact(value: Any) -> Any:
    # repr tells -0.0 from 0.0 and makes every NaN the same; bool and int need no help.
    return f"float {value!r}" if isinstance(value, float) else value


def _values(column: pa.ChunkedArray) -> list[Any]:
    # As stored: Python's own dates and times end long before those of Arrow.
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return [_exact(value) for value in column.to_pylist()]


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as values that are equal where the rows are."""
    columns = [_values(column) for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _assert_same_schema(actual: pa.Table, expected: pa.Table) -> None:
    got = [(f.name, str(f.type)) for f in actual.schema]
    want = [(f.name, str(f.type)) for f in expected.schema]
    assert got == want, f"columns differ\n  actual:   {got}\n  expected: {want}"


def _describe(counts: Counter[tuple[Any, ...]]) -> str:
    lines = [f"    {count} x {row}" for row, count in counts.most_common(_SHOWN)]
    if len(counts) > _SHOWN:
        lines.append(f"    ... and {len(counts) - _SHOWN} more different rows")
    return "\n".join(lines) or "    none"


def assert_same_rows(actual: pa.Table, expected: pa.Table) -> None:
    """The same columns and the same rows, each as often, in any order."""
    _assert_same_schema(actual, expected)
    got, want = Counter(rows_of(actual)), Counter(rows_of(expected))
    if got != want:
        raise AssertionError(
            f"rows differ: {actual.num_rows} actual, {expected.num_rows} expected\n"
            f"  missing:\n{_describe(want - got)}\n  too many:\n{_describe(got - want)}"
        )


def _same_column(actual: pa.ChunkedArray, expected: pa.ChunkedArray) -> bool:
    if not pa.types.is_floating(actual.type):
        return bool(actual.equals(expected))
    if not actual.is_null().equals(expected.is_null()):
        return False
    sides = [column.fill_null(0).to_numpy() for column in (actual, expected)]
    both_nan = np.isnan(sides[0]) & np.isnan(sides[1])
    bits = [np.ascontiguousarray(side).view(f"u{side.itemsize}") for side in sides]
    return bool(np.all((bits[0] == bits[1]) | both_nan))


def assert_same_result(actual: pa.Table, expected: pa.Table) -> None:
    """The same columns and the same rows in the same order."""
    _assert_same_schema(actual, expected)
    if actual.num_rows == expected.num_rows and all(
        _same_column(a, e) for a, e in zip(actual.columns, expected.columns, strict=True)
    ):
        return
    assert_same_rows(actual, expected)  # a wrong multiset gives the more telling message
    got, want = rows_of(actual), rows_of(expected)
    if got == want:  # dictionaries may hold the same values in another order
        return
    at = next(i for i, (a, e) in enumerate(zip(got, want, strict=True)) if a != e)
    raise AssertionError(
        f"same rows, wrong order from row {at} of {len(want)}\n"
        f"  actual:   {got[at : at + 3]}\n  expected: {want[at : at + 3]}"
    )


def assert_ordered(ordering: object, actual: pa.Table, expected: pa.Table, places: Sequence[int]) -> None:
    """The rows are the expected ones, each as often, and come as the ordering promises.

    ordering: "strict", "outer", "none" or a number k. places: the seq of each expected row's place, which never falls.
    An ordering by groups holds exactly where the rows of each group stand together, in the order of the groups; so the
    actual rows are cut where the expected groups end, and each piece must hold the same rows.
    """
    if ordering == "strict":
        assert_same_result(actual, expected)
        return
    assert_same_rows(actual, expected)
    if ordering == "none":
        return
    size = 1 if ordering == "outer" else ordering
    assert isinstance(size, int)
    start = 0
    for group, rows in groupby(place // size for place in places):
        length = len(list(rows))
        try:
            assert_same_rows(actual.slice(start, length), expected.slice(start, length))
        except AssertionError as error:
            where = f"ordering {ordering!r}, group {group}, rows {start} to {start + length - 1}"
            raise AssertionError(f"{where}: {error}") from None
        start += length
