"""Which ticks of the sequencer a task is due for."""

from __future__ import annotations


class TicksDue:
    """The sequencer ticks for all tasks, as often as the most impatient asks; others leave some of its ticks out.

    A task is due when its time is nearer to this tick than to the next: in the mean it is called as often as it asks.

    interval: the seconds between two calls of the task.
    every:    the seconds between two ticks of the sequencer.
    """

    def __init__(self, interval: float, every: float) -> None:
        self._interval = interval
        self._early = every / 2
        self._due: float | None = None

    def is_due(self, clock: float) -> bool:
        """Whether the task is called at a tick of this time; if so, its next time follows from it."""
        due = clock if self._due is None else self._due
        if clock < due - self._early:
            return False
        self._due = (due if due + self._interval > clock else clock) + self._interval
        return True

    def state(self) -> float | None:
        """What a new life goes on from."""
        return self._due

    def resume(self, due: float | None) -> None:
        """Go on from a state."""
        self._due = due
