"""How much a join will remember: rows of a window, bytes of a row. Estimates, for plans and warnings only.

Measured with unbounded windows, two million rows of a side and 8 bytes shown of each: 77 bytes a row for two
inequalities, 86 for an equality, 95 for a band. Most of it is what finds a row: its place in an index, its position and
its seq.
"""

from __future__ import annotations

import math
import warnings

import pyarrow as pa

from operators.query.durations import written
from operators.query.errors import UnboundedStateWarning
from operators.query.windows import CountWindow, UnboundedWindow, Window

BYTES_TO_FIND_A_ROW = 56
"""Position, sequence number, places in structures and their spare room."""

BYTES_OF_A_COMPARISON = 16
"""A key, and the room that structures leave beside it."""

BYTES_OF_A_VALUE = 8
"""Assumed where the type is not known."""

BYTES_OF_A_TEXT = 24
"""Assumed of values without a fixed length; with their offsets."""


def expected_rows(
    window: Window, rate: float | None = None, keys: int | None = None, event_time: pa.DataType | None = None
) -> float | None:
    """How many rows of a side are live, about; infinite where the number only grows, None where it cannot be said.

    rate:       rows of the side in a unit of event time, for time windows. A window that slides holds up to that.
    keys:       distinct keys, for windows per key.
    event_time: the type of the event-time column; None: row numbers.
    """
    if isinstance(window, UnboundedWindow):
        return math.inf
    if isinstance(window, CountWindow):
        if not window.per_key:
            return window.size
        return None if keys is None else window.size * keys
    return None if rate is None else rate * float(window.in_unit_of(event_time)[0])


def rows_in_words(window: Window, expected: float | None = None) -> str:
    """What a window holds, for a reader; with the estimate where there is one."""
    if isinstance(window, UnboundedWindow):
        return "every row, for ever"
    if isinstance(window, CountWindow):
        what = f"the last {window.size:,} rows"
        if not window.per_key:
            return what
        what += " of each key, and what came since the oldest of them"
    else:
        what = f"the rows of the last {written(window.size)}"
    return what if expected is None else f"{what}, about {expected:,.0f} rows"


def row_bytes(comparisons: int, columns: int | pa.Schema | None) -> int:
    """About how many bytes a live row takes: to find it, and the columns that are kept of it.

    columns: those that are shown or checked; their number where types are not known, None where not even that is.
    """
    found = BYTES_TO_FIND_A_ROW + BYTES_OF_A_COMPARISON * comparisons
    if isinstance(columns, pa.Schema):
        return found + sum(_value_bytes(field.type) for field in columns)
    return found + BYTES_OF_A_VALUE * (columns or 0)


def warn_of_unbounded_state(
    role: str, window: Window, comparisons: int, columns: int | pa.Schema | None, stacklevel: int = 2
) -> None:
    """Warn with an `UnboundedStateWarning` that says what it costs, where a side's window never forgets a row."""
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
