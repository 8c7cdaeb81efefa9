"""Event times as numbers.

Integers, timestamps, dates and durations become int64 in their own unit; floats become float64. Null and NaN have no
place in the order: they are marked as invalid, and the gate rejects and counts them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from topology.graph.errors import SchemaError
from topology.graph.messages import Time

Times = npt.NDArray[np.int64] | npt.NDArray[np.float64]


def check_event_time(stream: str, schema: pa.Schema, column: str, *, what: str = "stream") -> None:
    """Raise `SchemaError` unless the column exists and has a type that can be a time; `what` has that name."""
    if column not in schema.names:
        raise SchemaError(
            f"{what} '{stream}': event-time column '{column}' is missing; columns: {', '.join(schema.names)}"
        )
    kind = schema.field(column).type
    if not (_is_integral(kind) or pa.types.is_floating(kind)):
        raise SchemaError(
            f"{what} '{stream}': event-time column '{column}' is {kind}; "
            f"it must be a timestamp, a date, an integer or a float: cast it before sending"
        )


def event_times(column: pa.Array) -> tuple[Times, npt.NDArray[np.bool_] | None]:
    """Return the times, and a mask of the valid ones (None: all are valid)."""
    valid: npt.NDArray[np.bool_] | None = None
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
    times: Times
    if pa.types.is_floating(column.type):
        times = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
        nan = np.isnan(times)
        if nan.any():
            valid = ~nan if valid is None else valid & ~nan
        return times, valid
    if valid is None and column.type.bit_width == 64 and len(column):  # stored as int64 already: nothing to convert
        return np.frombuffer(column.buffers()[1], np.int64, count=len(column), offset=8 * column.offset), None
    if pa.types.is_date32(column.type) or pa.types.is_time32(column.type):
        column = column.cast(pa.int32())
    column = column.cast(pa.int64())
    if valid is not None:
        column = pc.fill_null(column, 0)
    return column.to_numpy(zero_copy_only=False), valid


def time_bounds(rows: pa.RecordBatch, column: str | None, first: int) -> tuple[Time, Time] | None:
    """Return the smallest and the largest event time of rows; None if none has one.

    column: the column with the time; None: the row's number is its time, and that of the first row is `first`.
    """
    if rows.num_rows == 0:
        return None
    if column is None:
        return first, first + rows.num_rows - 1
    times, valid = event_times(rows.column(column))
    timed = times if valid is None else times[valid]
    return (timed.min().item(), timed.max().item()) if len(timed) else None


def first_backwards(
    times: Times, valid: npt.NDArray[np.bool_] | None, latest: Time | None = None
) -> tuple[int, Time, Time] | None:
    """Return the first row that is earlier than a valid row before it, and both times; None if there is no such row.

    latest: the time of the last valid row in earlier batches.
    """
    kept = times if valid is None else times[valid]
    if latest is not None and len(kept) and kept[0] < latest:
        return (0 if valid is None else int(np.argmax(valid))), latest, kept[0].item()
    backwards = np.flatnonzero(kept[1:] < kept[:-1])
    if not len(backwards):
        return None
    at = int(backwards[0])
    row = at + 1 if valid is None else int(np.flatnonzero(valid)[at + 1])
    return row, kept[at].item(), kept[at + 1].item()


def time_as_json(time: Time | None) -> int | str | None:
    """An event time as JSON can express it: whole numbers as they are, floats exactly, as hexadecimal text."""
    return time.hex() if isinstance(time, float) else time


def time_from_json(written: int | str | None) -> Time | None:
    """The inverse of `time_as_json`."""
    return float.fromhex(written) if isinstance(written, str) else written


def _is_integral(kind: pa.DataType) -> bool:
    if pa.types.is_uint64(kind):
        return False  # its upper half does not fit into int64, and no clock needs it
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind)) and not pa.types.is_interval(kind)
