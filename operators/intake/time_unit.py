"""The unit that a gate compares event times in: the finest among the timestamps of its streams.

Timestamps are integers of their own unit. Those of a coarser one are multiplied, which is exact. So rows of all streams
have their place in one order, and windows subtract like from like. Everything else counts in its column's own unit:
what users give as plain numbers, and what leaves the join.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from topology import SchemaError, Time, Times

TIME = "#time"
"""The event time of a row behind the gate: its number in its source, where no column holds the event time, or the time
in the gate's unit, where that is finer than its column's."""

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_GREATEST = 2**63 - 1


def time_column(schema: pa.Schema, event_time: str | None) -> str:
    """The column behind the gate that holds the event time, in the unit of the gate."""
    return TIME if event_time is None or TIME in schema.names else event_time


def finest(kinds: Iterable[pa.DataType | None]) -> pa.DataType | None:
    """The timestamp of the finest unit among these types; None if none is a timestamp."""
    stamps = [kind for kind in kinds if kind is not None and pa.types.is_timestamp(kind)]
    return max(stamps, key=lambda kind: _PER_SECOND[kind.unit], default=None)


def in_units(kind: pa.DataType | None, unit: pa.DataType | None) -> int:
    """How many of `unit` one of a column's unit is: 1 unless both are timestamps, and `unit` is finer."""
    if kind is None or unit is None or not (pa.types.is_timestamp(kind) and pa.types.is_timestamp(unit)):
        return 1
    return max(1, _PER_SECOND[unit.unit] // _PER_SECOND[kind.unit])


def fit(least: Time, greatest: Time, factor: int) -> bool:
    """Whether whole times between these two can be multiplied."""
    return factor == 1 or (least * factor >= -_GREATEST and greatest * factor <= _GREATEST)


def multiplied(stream: str, times: Times, factor: int) -> Times:
    """Times in a unit that is `factor` times finer; raises a `SchemaError` if it cannot hold them. Cost: O(rows)."""
    if factor == 1 or not len(times):
        return times
    if not fit(times.min().item(), times.max().item(), factor):
        raise misfit(stream)
    return times * np.int64(factor)


def moved(time: Time, factor: int) -> Time:
    """A promised time in a unit that is `factor` times finer; beyond all times of rows it is the greatest or least."""
    return time if factor == 1 else max(-_GREATEST, min(_GREATEST, time * factor))


def misfit(stream: str) -> SchemaError:
    """The error for times that the unit of another stream cannot hold."""
    return SchemaError(
        f"stream '{stream}': its event times do not fit the unit of the other stream: cast the event times of both to "
        f"the coarser unit before sending"
    )
