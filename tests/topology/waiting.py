"""How tests wait: for a condition, and with a limit that only a bug reaches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

LONG = 300.0
"""Seconds after which something is taken to hang; generous, because the machine may be busy."""

SHORT = 0.05
"""Seconds in which something that must not happen gets its chance to happen."""


def wait_for(condition: Callable[[], bool], what: str = "the condition never held") -> None:
    """Return as soon as the condition holds."""
    assert done_within(condition, LONG), what


def repeatedly() -> Iterator[None]:
    """Loop until an error that comes from another thread or process ends the loop; gives up when something hangs."""
    limit = time.monotonic() + LONG
    while time.monotonic() < limit:
        yield


def done_within(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition holds at some moment within `seconds`."""
    limit = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        if time.monotonic() > limit:
            return condition()
        pause.wait(0.005)
    return True
