"""How far each physical source has come at the gate, and for which of them all others wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators.intake.waiting_run import SourceName
from topology import Facts, Time

MOST_SOURCES = 50
"""So many sources are described, those that others wait for first, then the furthest behind."""

_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_DAY = 86_400.0


@dataclass(frozen=True)
class SourceProgress:
    """One source.

    frontier: it will send nothing earlier; None: it has promised nothing yet.
    waiting:  rows of it that have not been put in order.
    awaited:  rows wait because of it.
    """

    name: SourceName
    frontier: Time | None
    waiting: int
    ended: bool
    idle: bool
    awaited: bool = False

    @property
    def state(self) -> str:
        """In one word."""
        return "ended" if self.ended else "idle" if self.idle else "silent" if self.frontier is None else "open"


def described(sources: Sequence[SourceProgress], kinds: Mapping[str, pa.DataType | None]) -> list[Facts]:
    """Describe sources; `kinds` are the types of the streams' event times, None where the row's number is the time.

    `behind` is how far a source is behind the furthest one: in seconds where the event time is a time (`unit` "s"),
    otherwise in its own units.
    """
    known = [source.frontier for source in sources if source.frontier is not None]
    latest = max(known, default=0)
    order = sorted(
        sources, key=lambda each: (not each.awaited, each.ended, latest if each.frontier is None else each.frontier)
    )
    return [_described(source, latest, kinds.get(source.name.stream)) for source in order[:MOST_SOURCES]]


def _described(source: SourceProgress, latest: Time, kind: pa.DataType | None) -> Facts:
    seconds = None if kind is None else _unit_seconds(kind)
    behind = None if source.frontier is None else float(latest - source.frontier) * (seconds or 1.0)
    return {
        "stream": source.name.stream,
        "source": source.name.name,
        "state": source.state,
        "awaited": source.awaited,
        "waiting_rows": source.waiting,
        "reached": None if source.frontier is None else _written(source.frontier, kind),
        "behind": behind,
        "unit": "rows" if kind is None else "s" if seconds else "",
    }


def _unit_seconds(kind: pa.DataType) -> float | None:
    """The seconds of one unit of an event time; None if it is a plain number."""
    if pa.types.is_date32(kind):
        return _DAY
    if pa.types.is_date64(kind):
        return 1e-3
    return _SECONDS.get(getattr(kind, "unit", ""))


def _written(time: Time, kind: pa.DataType | None) -> str:
    if kind is None or not pa.types.is_temporal(kind):
        return f"{time:,}" if isinstance(time, int) else repr(time)
    stored = pa.int32() if kind.bit_width == 32 else pa.int64()
    try:
        return str(pa.array([time], stored).cast(kind).cast(pa.string())[0])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a time beyond what the calendar can write
        return str(time)
