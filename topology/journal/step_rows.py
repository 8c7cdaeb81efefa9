"""Which rows the last steps of a deciding task hold: an error in a task behind it names those of its step."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import TypeAlias

RowsOfStep: TypeAlias = "Mapping[tuple[str, str], tuple[int | None, int]]"
"""By stream and source, the offsets [first, end) of the rows of a step; from None: only the end is known."""

KEPT_STEPS = 1024
"""A task is not further behind than so many steps: edges hold so many bytes."""


class StepRows:
    """Any thread may call it."""

    def __init__(self) -> None:
        self._steps: deque[tuple[int, RowsOfStep]] = deque(maxlen=KEPT_STEPS)
        self._lock = threading.Lock()

    def note(self, seq: int, rows: RowsOfStep) -> None:
        """A step ends with `seq`."""
        if rows:
            with self._lock:
                self._steps.append((seq, rows))

    def after(self, seq: int) -> str:
        """The rows of the step behind `seq` in words; empty if it is not known."""
        with self._lock:
            found = next((rows for end, rows in self._steps if end > seq), None)
            known_before = bool(self._steps) and (self._steps[0][0] <= seq or len(self._steps) < KEPT_STEPS)
        if found is None or not known_before:
            return ""
        return ", ".join(rows_in_words(*place, first, end) for place, (first, end) in found.items())


def rows_in_words(stream: str, source: str, first: int | None, end: int) -> str:
    """Rows of a source, as people read them; the last one is named, not the one behind it."""
    if first is None:
        rows = f"rows up to {end - 1:,}" if end else "rows"
    elif first + 1 >= end:
        rows = f"row {first:,}"
    else:
        rows = f"rows {first:,}-{end - 1:,}"
    return f"{rows} of {stream} from {source}"


def at_rows(rows: str, error: str) -> str:
    """The text of an error with the rows that the task worked on."""
    return f"at {rows}:\n{error}" if rows else error
