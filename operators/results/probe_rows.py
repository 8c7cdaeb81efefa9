"""The rows of one side whose results are not complete, in the collector."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from operators.protocol.columns import Int64


@dataclass(frozen=True)
class ProbeStep:
    """Consecutive rows of one side, the first at position `first`: their sequence numbers and when they came in.

    expired: for each side, the position below which its rows have expired at each of these rows; None if not needed.
    """

    first: int
    seq: Int64
    born: float
    expired: tuple[Int64 | None, Int64 | None] = (None, None)

    def split(self, rows: int) -> tuple[ProbeStep, ProbeStep]:
        """The first `rows` rows, and the others."""
        before, after = ([None if each is None else each[part] for each in self.expired] for part in _parts(rows))
        return (
            ProbeStep(self.first, self.seq[:rows], self.born, (before[0], before[1])),
            ProbeStep(self.first + rows, self.seq[rows:], self.born, (after[0], after[1])),
        )


def _parts(rows: int) -> tuple[slice, slice]:
    return slice(None, rows), slice(rows, None)


class ProbeRows:
    """A queue of steps."""

    def __init__(self) -> None:
        self._steps: deque[ProbeStep] = deque()
        self.first = 0

    def append(self, step: ProbeStep) -> None:
        self._steps.append(step)

    def end(self, seq: int) -> int:
        """The position after the last row with a sequence number of at most `seq`."""
        end = self.first
        for step in self._steps:
            rows = len(step.seq) if step.seq[-1] <= seq else int(np.searchsorted(step.seq, seq, side="right"))
            end = step.first + rows
            if rows < len(step.seq):
                break
        return end

    def born(self, position: int) -> float:
        """When the row at a position came in."""
        return next(step.born for step in self._steps if position < step.first + len(step.seq))

    def take(self, end: int) -> TakenRows:
        """Remove and return the rows before position `end`."""
        taken = []
        first = self.first
        while self._steps and self._steps[0].first < end:
            step = self._steps.popleft()
            rows = end - step.first
            if rows < len(step.seq):
                step, rest = step.split(rows)
                self._steps.appendleft(rest)
            taken.append(step)
        self.first = end
        return TakenRows(first, tuple(taken))


@dataclass(frozen=True)
class TakenRows:
    """Complete rows, the first of them at position `first`."""

    first: int
    steps: tuple[ProbeStep, ...]

    @property
    def seq(self) -> Int64:
        """Their sequence numbers."""
        return _joined([step.seq for step in self.steps])

    def expired(self, side: int) -> Int64:
        """At each of them, the position below which the rows of a side have expired."""
        return _joined([each for step in self.steps if (each := step.expired[side]) is not None])


def _joined(parts: list[Int64]) -> Int64:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
