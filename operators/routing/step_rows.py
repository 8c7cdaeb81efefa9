"""The rows of a step in the router, with sequence numbers, positions and live ranges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from indexes import Live
from operators.intake.gate_task import SEQ
from operators.intake.time_unit import in_units, time_column
from operators.protocol.columns import Int64, values_of
from operators.protocol.sides import LEFT, RIGHT
from operators.query.windows import CountWindow, Window
from operators.routing.key_ordinals import KeyedRows
from operators.routing.liveness import Liveness, Times, liveness
from operators.routing.merge_policy import TimeUnit
from topology import Batch, event_times

NO_ROWS: Int64 = np.empty(0, dtype=np.int64)

PerSide = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class StepRows:
    """The rows of both sides between two punctuations.

    before:  for the rows of each side, how many rows of the left and of the right side come before them.
    lives:   for the rows of each side, the positions of the other side that they may meet.
    expired: for the rows of each side, the position below which rows of the left and of the right side have expired;
             None where no rows are remembered until they expire.
    times:   of the rows of each side.
    """

    batches: tuple[Batch | None, Batch | None]
    seqs: PerSide
    before: tuple[PerSide, PerSide]
    lives: tuple[Live, Live]
    expired: tuple[tuple[Int64 | None, Int64 | None], tuple[Int64 | None, Int64 | None]]
    times: tuple[Times, Times]


def is_per_key(window: Window) -> bool:
    """Whether a window counts the rows of each key separately."""
    return isinstance(window, CountWindow) and window.per_key


class WindowBorders:
    """Counts the rows of both sides and keeps their windows.

    sides:    the window of each side and its event-time column, None where row numbers are the time.
    expiring: for each side, whether every row, of either side, needs to know which of its rows have expired.
    """

    def __init__(
        self,
        sides: tuple[tuple[Window, str | None], tuple[Window, str | None]],
        self_join: bool,
        expiring: tuple[bool, bool],
    ) -> None:
        self._sides = sides
        self._self_join = self_join
        # rows of windows per key expire one by one, and are listed
        self._expiring = tuple(each and not is_per_key(sides[side][0]) for side, each in enumerate(expiring))
        self._liveness: list[Liveness | None] = [None, None]
        self._arrived = [0, 0]
        self._live = [0, 0]
        self._missing = [0, 0]
        self.units: list[TimeUnit | None] = [None, None]
        """Of the times of each side, from its first rows on."""

    def begin(self, side: int, missing: int) -> None:
        """Begin behind the first rows of a side, which have all expired; positions count from there."""
        self._missing[side] = missing

    @property
    def arrived(self) -> tuple[int, int]:
        """Rows that have arrived on each side."""
        return (self._arrived[LEFT], self._arrived[RIGHT])

    @property
    def live(self) -> tuple[int, int]:
        """The position on each side below which no future row meets anything."""
        return (self._live[LEFT], self._live[RIGHT])

    def take(
        self, batches: tuple[Batch | None, Batch | None], keyed: tuple[KeyedRows, KeyedRows] | None = None
    ) -> StepRows:
        """Number a step's rows and find their live ranges. Cost: O(rows), and a search per row in a time window.

        keyed: the live ranges of windows per key, which are not computed here.
        """
        arrived = self.arrived
        left, right = (NO_ROWS if batch is None else values_of(batch.rows.column(SEQ)) for batch in batches)
        seqs = (left, right)
        times = [self._arrive(side, batches[side]) for side in (LEFT, RIGHT)]
        before = (self._before(LEFT, batches, seqs, arrived), self._before(RIGHT, batches, seqs, arrived))
        found = [
            [self._first(of, before[side][of], times[side], other=of != side) for of in (LEFT, RIGHT)]
            for side in (LEFT, RIGHT)
        ]
        for side, other in ((LEFT, RIGHT), (RIGHT, LEFT)):
            if keyed is not None and is_per_key(self._sides[other][0]) and found[side][other] is not None:
                found[side][other] = keyed[side].first
        lives = []
        for side, other in ((LEFT, RIGHT), (RIGHT, LEFT)):
            first, end = found[side][other], before[side][other]
            lives.append(Live(end if first is None else first, end))
            if first is not None and len(first):
                self._live[other] = max(self._live[other], int(first[-1]))
        expired = (self._expired(found[LEFT], seqs[LEFT]), self._expired(found[RIGHT], seqs[RIGHT]))
        return StepRows(batches, seqs, before, (lives[LEFT], lives[RIGHT]), expired, (times[LEFT], times[RIGHT]))

    def _arrive(self, side: int, batch: Batch | None) -> Times:
        """Count the rows of a side, give its window their times, and return these."""
        if batch is None:
            return NO_ROWS
        window, event_time = self._sides[side]
        schema = batch.rows.schema
        column = time_column(schema, event_time)
        if self._liveness[side] is None:
            kind = None if event_time is None else schema.field(event_time).type
            factor = in_units(kind, schema.field(column).type)
            self._liveness[side] = liveness(window, kind, self._missing[side], factor)
            self.units[side] = (kind, factor)
        assert batch.first == self._arrived[side], "the gate numbers the rows of a stream without gaps"
        times, _ = event_times(batch.rows.column(column))
        own = self._liveness[side]
        assert own is not None
        own.append(times)
        self._arrived[side] = batch.end
        return times

    def _before(
        self, side: int, batches: tuple[Batch | None, Batch | None], seqs: PerSide, arrived: tuple[int, int]
    ) -> PerSide:
        batch = batches[side]
        if batch is None:
            return (NO_ROWS, NO_ROWS)
        own = np.arange(batch.first, batch.end)
        if self._self_join:
            return (own, own)
        others = arrived[1 - side] + np.searchsorted(seqs[1 - side], seqs[side])
        return (own, others) if side == LEFT else (others, own)

    def _expired(self, found: list[Int64 | None], seqs: Int64) -> tuple[Int64 | None, Int64 | None]:
        """The found positions of the sides that are expiring; of a side without rows none has expired."""
        left, right = (
            (np.zeros(len(seqs), np.int64) if each is None else each) if expiring else None
            for each, expiring in zip(found, self._expiring, strict=True)
        )
        return left, right

    def _first(self, of: int, before: Int64, times: Times, other: bool) -> Int64 | None:
        """The first live position of side `of` at each row; None if it is not needed or no row of it has arrived."""
        window = self._liveness[of]
        if not (other or self._expiring[of]):
            return None
        return None if window is None or not len(before) else window.first(before, times)
