"""How much of a stream's past a join needs, so that a log knows what to keep.

A result after some place of the total order depends on the rows that are live there, and those follow from the windows:
the last rows of a stream by number or by time. Windows that are unbounded, or that count each key separately, may need
any row: nothing can be forgotten then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from operators.intake.time_unit import in_units
from operators.query.durations import Duration
from operators.query.windows import CountWindow, TimeWindow, Window
from topology import Facts, Time, time_as_json, time_from_json

_ROUNDING = 1e-9
"""Float times are subtracted with an error; what is kept is longer by this share of them."""


@dataclass(frozen=True)
class Retention:
    """What a join's results depend on.

    windows:  the windows over each stream; of a self-join, both windows over the same one.
    remember: whether results also depend on which of the live rows have had a pair, as those of outer joins do. A live
              row may have met rows that have expired since. So what a live row needs is kept as well.
    """

    windows: tuple[tuple[str, Window], ...]
    remember: bool = False

    @property
    def forgets(self) -> bool:
        """Whether the windows say which rows no later result depends on."""
        return all(
            isinstance(window, TimeWindow) or (isinstance(window, CountWindow) and not window.per_key)
            for _, window in self.windows
        )

    def reached(
        self, positions: Mapping[str, int], time: Time, kinds: Mapping[str, pa.DataType | None], unit: str = ""
    ) -> Facts:
        """Describe a place: how many rows of each stream come before it, its time, and what results after it need.

        kinds: the type of the event time of each stream that has rows; None for row numbers.
        unit:  that of `time`, where event times are timestamps.
        """
        needed: dict[str, Any] | None = {"at": {}, "time": None}
        for stream, window in self.windows:
            if stream not in kinds:
                continue
            kind = kinds[stream]
            factor = in_units(kind, pa.timestamp(unit)) if unit else 1
            needed = None if needed is None else _needed(needed, stream, window, positions[stream], time, kind, factor)
        return {"at": dict(positions), "time": time_as_json(time), "unit": unit, "needs": needed}

    def start_for(self, starts: Sequence[Facts], acknowledged: Facts) -> int:
        """Return the number of the latest start from which all results after `acknowledged` can be made."""
        found = _latest(starts, acknowledged)
        return _latest(starts, starts[found]) if self.remember else found


def intake(event_times: Mapping[str, str | None], bounds: Mapping[str, Duration]) -> str:
    """Say how rows come to be in one order, which another query cannot change."""
    times = [f"{stream} by {event_times[stream] or 'row number'}" for stream in sorted(event_times)]
    return ", ".join([*times, *(f"{stream} out of order by {bound}" for stream, bound in sorted(bounds.items()))])


def _latest(starts: Sequence[Facts], place: Facts) -> int:
    enough = [number for number, start in enumerate(starts) if start and place and _suffices(start, place)]
    return max(enough, default=0)


def _needed(
    needed: dict[str, Any],
    stream: str,
    window: Window,
    position: int,
    time: Time,
    kind: pa.DataType | None,
    factor: int,
) -> dict[str, Any] | None:
    at, earliest = dict(needed["at"]), time_from_json(needed["time"])
    if isinstance(window, CountWindow) and not window.per_key:
        at[stream] = min(position - window.size, at.get(stream, position))
    elif isinstance(window, TimeWindow):
        size, slide = window.in_unit_of(kind, factor)
        begin = time - size - (slide or 0)
        if isinstance(begin, float):
            begin -= _ROUNDING * (abs(time) + abs(size) + (slide or 0))
        earliest = begin if earliest is None else min(earliest, begin)
    else:
        return None
    return {"at": at, "time": time_as_json(earliest)}


def _suffices(start: Facts, acknowledged: Facts) -> bool:
    """Whether rows from `start` on are all that results after `acknowledged` depend on; both are what was `reached`."""
    needs = acknowledged["needs"]
    if needs is None:
        return False
    if any(start["at"].get(stream, 0) > position for stream, position in needs["at"].items()):
        return False
    earliest, begin = time_from_json(needs["time"]), time_from_json(start["time"])
    return earliest is None or (begin is not None and begin < earliest)
