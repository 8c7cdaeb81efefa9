"""Estimates of the state that a join keeps: rows of a window, bytes of a row. For plans and warnings only.

Measured with unbounded windows, two million rows per side and 8 bytes of payload per row: 77 bytes a row for two
inequalities, 86 for an equality, 95 for a band. Most of them serve to find the row: its place in an index, its position
and its seq.
"""

from __future__ import annotations

import warnings

import pyarrow as pa

from operators.query.durations import written
from operators.query.errors import UnboundedStateWarning
from operators.query.windows import CountWindow, UnboundedWindow, Window

BYTES_TO_FIND_A_ROW = 56
"""Position, sequence number, places in index structures and their spare capacity."""

BYTES_OF_A_COMPARISON = 16
"""A key, and the spare capacity that structures keep beside it."""

BYTES_OF_A_VALUE = 8
"""Assumed where the type is unknown."""

BYTES_OF_A_TEXT = 24
"""Assumed for values of variable length, including their offsets."""


def rows_in_words(window: Window) -> str:
    """Describe in words what a window holds."""
    if isinstance(window, UnboundedWindow):
        return "every row, for ever"
    if isinstance(window, CountWindow):
        of_each_key = " of each key, and what came since the oldest of them" if window.per_key else ""
        return f"the last {window.size:,} rows{of_each_key}"
    return f"the rows of the last {written(window.size)}"


def row_bytes(comparisons: int, columns: int | pa.Schema | None) -> int:
    """Estimate the bytes of a live row: what is needed to find it, and the columns kept of it.

    columns: the columns that are shown or checked: their schema, their number where types are unknown, or None where
             even that is unknown.
    """
    found = BYTES_TO_FIND_A_ROW + BYTES_OF_A_COMPARISON * comparisons
    if isinstance(columns, pa.Schema):
        return found + sum(_value_bytes(field.type) for field in columns)
    return found + BYTES_OF_A_VALUE * (columns or 0)


def warn_of_unbounded_state(
    role: str, window: Window, comparisons: int, columns: int | pa.Schema | None, stacklevel: int = 2
) -> None:
    """Issue an `UnboundedStateWarning` with the estimated cost if a side's window never drops a row."""
    if not isinstance(window, UnboundedWindow):
        return
    each = row_bytes(comparisons, columns)
    unknown = "" if isinstance(columns, pa.Schema) else "; text takes more"
    if columns is None:
        unknown = ", and the columns that are shown"
    warnings.warn(
        f"the window of '{role}' is unbounded: every row of it is kept for ever, about {each} bytes a row, "
        f"{each} MB for a million rows{unknown}. Give '{role}' a TimeWindow or a CountWindow, or, if its rows are few, "
        f"ignore the category UnboundedStateWarning",
        UnboundedStateWarning,
        stacklevel=stacklevel,
    )


def _value_bytes(kind: pa.DataType) -> int:
    if pa.types.is_null(kind):
        return 0
    if pa.types.is_dictionary(kind):
        return _value_bytes(kind.index_type)
    if pa.types.is_struct(kind):
        return sum(_value_bytes(field.type) for field in kind)
    if isinstance(kind, pa.BaseExtensionType):
        return _value_bytes(kind.storage_type)
    try:
        return -(-int(kind.bit_width) // 8)
    except ValueError:
        return BYTES_OF_A_TEXT
