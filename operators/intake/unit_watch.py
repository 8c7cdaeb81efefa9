"""Keeps the event times of a gate in one unit while it learns the types of its streams.

A gate counts in the unit of the first timestamps that it sees. Those of a coarser unit are multiplied as they come.
When a stream of a finer unit appears, all that waits is multiplied, once. After the first row has passed, windows
count in the unit of that row, so it stays. Before rows pass by a stream that is idle from the start, whose type may be
any, the gate goes over to nanoseconds.

A promise may come before the first row of its stream tells its unit. It is taken to be in the gate's unit. If that was
wrong the stream is refused, because rows may have passed too early.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from operators.intake.scale_gate import ScaleGate
from operators.intake.time_unit import finest, in_units, misfit, moved, multiplied
from topology import SchemaError, Time, Times


class UnitWatch:
    """The unit of a gate, and that of each stream whose event times are timestamps."""

    def __init__(self, gate: ScaleGate) -> None:
        self._gate = gate
        self._unit: pa.DataType | None = None
        self._kinds: dict[str, pa.DataType] = {}
        self._presumed: dict[str, pa.DataType | None] = {}

    @property
    def unit(self) -> str:
        """The unit that the gate counts in: s, ms, us or ns; "" where no stream has timestamps."""
        return "" if self._unit is None else self._unit.unit

    def learn(self, stream: str, kind: pa.DataType) -> None:
        """The type of a stream's event times has become known; before any of its rows is added."""
        if not pa.types.is_timestamp(kind):
            return
        presumed = self._presumed.pop(stream, kind)
        if presumed is not None and presumed.unit != kind.unit:
            raise _late_finding(stream, kind, presumed)
        self._kinds[stream] = kind
        if self._unit is None:
            self._unit = kind
            self._presumed = {each: known or kind for each, known in self._presumed.items()}
        elif in_units(self._unit, kind) > 1:
            if self._gate.passed is not None:
                raise _late_finding(stream, kind, self._unit)
            self._go_over(stream, kind)

    def settle(self, unit: str) -> None:
        """Count in a unit that another gate has counted in."""
        if unit and self._unit is not None and self._gate.passed is None:
            wanted = pa.timestamp(unit, self._unit.tz)
            if in_units(self._unit, wanted) > 1:
                self._go_over("", wanted)

    def prepare_for(self, unknown: set[str]) -> None:
        """Rows are about to pass; these streams may have timestamps of any unit."""
        if self._unit is not None and unknown - self._presumed.keys():
            wanted = pa.timestamp("ns", self._unit.tz)
            if self._gate.fits(in_units(self._unit, wanted)):
                self.settle("ns")

    def presumed(self) -> list[list[str | None]]:
        """What is taken for the types of streams that have promised something before their first rows, as JSON."""
        return [
            [stream, *((None, None) if kind is None else (kind.unit, kind.tz))]
            for stream, kind in self._presumed.items()
        ]

    def presume(self, presumed: Iterable[Sequence[str | None]]) -> None:
        """Go on from what was `presumed`."""
        for stream, unit, zone in presumed:
            assert stream is not None, "a stream has a name"
            self._presumed[stream] = None if unit is None else pa.timestamp(unit, zone)

    def resume(self, unit: str, kinds: Mapping[str, pa.DataType | None]) -> None:
        """Go on where another gate was."""
        self._kinds = {each: kind for each, kind in kinds.items() if kind is not None and pa.types.is_timestamp(kind)}
        known = finest(self._kinds.values())
        self._unit = None if known is None else pa.timestamp(unit, known.tz)

    def times(self, stream: str, times: Times) -> Times:
        """The event times of rows, in the gate's unit; raises a `SchemaError` if they do not fit."""
        return multiplied(stream, times, self._factor(stream))

    def bound(self, stream: str, bound: Time) -> Time:
        """A length of time of a stream, in the gate's unit."""
        return bound * self._factor(stream)

    def promise(self, stream: str, time: Time) -> Time:
        """A promised time of a stream, in the gate's unit."""
        if stream not in self._kinds:
            self._presumed.setdefault(stream, self._unit)
        return moved(time, self._factor(stream))

    def kinds(self, kinds: Mapping[str, pa.DataType | None]) -> dict[str, pa.DataType | None]:
        """The types of event times as the gate counts them."""
        return {stream: self.added(stream) or kind for stream, kind in kinds.items()}

    def added(self, stream: str) -> pa.DataType | None:
        """The type of a stream's times in the gate's unit; None where its own column has that unit."""
        return self._unit if self._factor(stream) > 1 else None

    def _factor(self, stream: str) -> int:
        return in_units(self._kinds.get(stream), self._unit)

    def _go_over(self, stream: str, finer: pa.DataType) -> None:
        factor = in_units(self._unit, finer)
        if not self._gate.fits(factor):
            raise misfit(next((each for each in self._kinds if each != stream), stream))
        self._gate.rescale(factor)
        self._unit = finer


def _late_finding(stream: str, kind: pa.DataType, counted: pa.DataType) -> SchemaError:
    return SchemaError(
        f"stream '{stream}': its event times are {kind}, and rows have been put in order by {counted} before that was "
        f"known: cast them to {counted} before sending"
    )
