"""Whether a topology takes rows: a deactivated one goes on with what it has, and takes nothing new."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from topology.graph.errors import StoppedError

LOOK_UP_SECONDS = 0.2
"""How often somebody who waits looks whether there is still a reason to."""

WARNING_SECONDS = 10.0
"""How often somebody who waits says so."""

log = logging.getLogger("interlace")


class Activity:
    """Asked before each batch that enters a process; whoever asks waits while the topology is deactivated.

    Any thread may call it. A call that was let through before a change still brings its rows.
    """

    def __init__(self) -> None:
        self._active = threading.Event()
        self._active.set()
        self._closed = False

    @property
    def is_active(self) -> bool:
        """Whether rows are taken."""
        return self._active.is_set()

    @property
    def is_closed(self) -> bool:
        """Whether nothing will be taken any more."""
        return self._closed

    def change(self, active: bool) -> None:
        """Take rows from now on, or none; harmless when repeated."""
        if active or self._closed:
            self._active.set()
        else:
            self._active.clear()

    def wait(self, who: str, is_over: Callable[[], bool] = lambda: False) -> None:
        """Wait until rows are taken; returns at once while they are. Raises a `StoppedError` after `close`.

        who:     named in the log while it waits.
        is_over: whether there is no reason to wait any more: whoever asked finds out why.
        """
        if self._active.is_set() and not self._closed:
            return
        warn_at = time.monotonic() + WARNING_SECONDS
        while not self._active.wait(LOOK_UP_SECONDS) and not is_over():
            if time.monotonic() > warn_at:
                warn_at += WARNING_SECONDS
                log.warning("%s waits: the topology is deactivated; activate() lets it go on", who)
        if self._closed:
            raise StoppedError("the topology has been stopped")

    def close(self) -> None:
        """Wake everyone who waits, for good: the process takes nothing any more."""
        self._closed = True
        self._active.set()
