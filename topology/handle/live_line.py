"""A line in the cell of a notebook that says how a long call is going, while it goes on.

The line is one output of the cell that changes, so the file keeps what it said last. Widgets would not be kept.
Elsewhere nothing is shown: programs have logs, and the terminal has `interlace top`.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from html import escape
from types import TracebackType
from typing import Any, Self

SHOWN_AFTER_SECONDS = 1.0
"""Calls that take less show nothing."""

EVERY_SECONDS = 0.5

STYLE = "font-family:monospace;font-size:90%;opacity:.85;white-space:pre-wrap"


def in_notebook() -> bool:
    """Whether this process runs the cells of a notebook."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return hasattr(shell, "kernel")


class LiveLine:
    """Shows what `tell` returns while its block runs, if that takes long enough and a notebook is there to show it.

    A later block of the same line goes on with the same output.

    tell:     called by a thread of its own, now and then and at the end; what it raises ends the line.
    fraction: how much of the work is done, from 0 to 1, for a bar; None: nobody knows.
    after:    seconds until the line appears.
    """

    def __init__(
        self,
        tell: Callable[[], str],
        fraction: Callable[[], float] | None = None,
        after: float = SHOWN_AFTER_SECONDS,
    ) -> None:
        self._tell = tell
        self._fraction = fraction
        self._after = after
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._output: Any = None

    def __enter__(self) -> Self:
        self._over.clear()
        if in_notebook():
            self._thread = threading.Thread(target=self._run, name="live line", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        if self._over.wait(self._after):
            return
        try:
            while not self._over.wait(EVERY_SECONDS if self._output is not None else 0):
                self._show()
            self._show()
        except Exception:
            return  # the call itself raises what has gone wrong

    def _show(self) -> None:
        from IPython.display import HTML, display

        bar = "" if self._fraction is None else f'<progress value="{self._fraction():.3f}" max="1"></progress> '
        shown = HTML(f'<div style="{STYLE}">{bar}{escape(self._tell())}</div>')
        if self._output is None:
            self._output = display(shown, display_id=True)
        else:
            self._output.update(shown)


class Rate:
    """How fast a count grows, from its values at different times."""

    def __init__(self) -> None:
        self._before: tuple[float, int] | None = None
        self._rate = 0.0

    def at(self, count: int) -> float:
        """Return the growth per second since the last call; 0 at first."""
        now = time.monotonic()
        if self._before is not None and now > self._before[0]:
            self._rate = (count - self._before[1]) / (now - self._before[0])
        self._before = now, count
        return self._rate
