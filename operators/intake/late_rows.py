"""Rows that take no part in a join, and how they are reported on its output `late`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

LATE = "late"
"""The sink of a join's late and rejected rows."""

LATE_STREAM = "#late"
"""The gate's output stream for them; a user's stream cannot have this name."""


class Reason(IntEnum):
    """Why a row takes no part. The first two depend on the rows of its source alone, the others also on timing."""

    NO_EVENT_TIME = 1
    """Its event time is null or NaN."""
    OUT_OF_ORDER = 2
    """It is earlier than its source's bound allows."""
    JOINED_TOO_LATE = 3
    """Its source became known after later rows had been put in order."""
    WAS_IDLE = 4
    """Its source was silent, so later rows were put in order without it."""

    @property
    def text(self) -> str:
        """The text in the column `reason`."""
        return _TEXTS[self]

    @property
    def metric(self) -> str:
        """The name of its counter in the gate's metrics."""
        return "rejected" if self is Reason.NO_EVENT_TIME else f"late_{self.name.lower()}"


_TEXTS = {
    Reason.NO_EVENT_TIME: "no event time",
    Reason.OUT_OF_ORDER: "out of order",
    Reason.JOINED_TOO_LATE: "source joined too late",
    Reason.WAS_IDLE: "source was idle",
}


@dataclass(frozen=True)
class Late:
    """The late rows among some rows: their numbers, ascending, and the reason for each."""

    rows: npt.NDArray[np.int64]
    reasons: npt.NDArray[np.uint8]

    @classmethod
    def mark(cls, late: Late | None, which: npt.NDArray[np.bool_] | None, reason: Reason) -> Late | None:
        """Add rows for a reason; a row that is late already keeps its reason. Cost: O(rows)."""
        if which is None:
            return late
        if late is not None:
            which = which.copy()
            which[late.rows] = False
        found = np.flatnonzero(which)
        if not len(found):
            return late
        fresh = cls(found, np.full(len(found), reason, np.uint8))
        return fresh if late is None else late.and_also(fresh)

    def and_also(self, other: Late) -> Late:
        """Combine with other late rows."""
        rows = np.concatenate([self.rows, other.rows])
        order = np.argsort(rows, kind="stable")
        return Late(rows[order], np.concatenate([self.reasons, other.reasons])[order])

    def others(self, total: int) -> npt.NDArray[np.bool_]:
        """Return a mask of `total` rows: true where a row is not late."""
        kept = np.ones(total, np.bool_)
        kept[self.rows] = False
        return kept

    def counts(self) -> dict[Reason, int]:
        """Count the rows of each reason."""
        return {reason: count for reason in Reason if (count := int(np.count_nonzero(self.reasons == reason)))}


def late_schema(event_time: pa.DataType) -> pa.Schema:
    """Return the columns of the output `late` for an event-time column of that type.

    Integers of all widths are int64 there: two streams may have event times of different widths.
    """
    return pa.schema(
        [
            ("stream", pa.string()),
            ("source", pa.string()),
            ("offset", pa.int64()),
            ("event_time", pa.int64() if pa.types.is_integer(event_time) else event_time),
            ("reason", pa.string()),
        ]
    )


def late_batch(stream: str, source: str, first: int, times: pa.Array, late: Late) -> pa.RecordBatch:
    """Build the output `late` for a batch; `times` are the event times of all its rows, as they were sent."""
    count = len(late.rows)
    schema = late_schema(times.type)
    columns = [
        pa.repeat(pa.scalar(stream, pa.string()), count),
        pa.repeat(pa.scalar(source, pa.string()), count),
        pa.array(first + late.rows),
        times.take(pa.array(late.rows)).cast(schema.field("event_time").type),
        pa.array([None, *_TEXTS.values()], pa.string()).take(pa.array(late.reasons)),
    ]
    return pa.record_batch(columns, schema=schema)
