"""Finds silent sources, by a clock that stops while the topology takes nothing.

Back-pressure is not silence: a sender that waits for a reader of results may hold the next rows of the source that
seems idle.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Key = tuple[str, str]
"""A stream and one of its sources; an empty source stands for a stream that has none yet."""


STALL_SECONDS = 0.1
"""The clock stops when rows have waited for room this long and none were taken."""


class EntryClock:
    """Counts the seconds that pass, except those in which rows waited for room and none were taken."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._senders = 0
        self._moved = 0.0
        self._stood = 0.0
        self._lock = threading.Lock()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Use it around a call that may wait for room."""
        with self._lock:
            if not self._senders:
                self._moved = self._now()
            self._senders += 1
        try:
            yield
        finally:
            with self._lock:
                now = self._now()
                if now - self._moved > STALL_SECONDS:
                    self._stood += now - self._moved
                self._moved = now
                self._senders -= 1

    def seconds(self) -> float:
        """The seconds counted so far."""
        with self._lock:
            now = self._now()
            stands = self._senders and now - self._moved > STALL_SECONDS
            return (self._moved if stands else now) - self._stood


class IdleWatch:
    """The watched sources, each with its limit and the time of its last activity."""

    def __init__(self, clock: EntryClock) -> None:
        self._clock = clock
        self._limits: dict[str, float] = {}
        self._active: dict[Key, float] = {}
        self._lock = threading.Lock()

    def watch(self, stream: str, idle_after: float) -> None:
        """Watch the sources of a stream, and the stream itself until it has one."""
        with self._lock:
            self._limits[stream] = idle_after
            self._active[stream, ""] = self._clock.seconds()

    def heard_of(self, stream: str, source: str) -> None:
        """Note that a source has been announced or has sent rows."""
        if stream in self._limits:
            with self._lock:
                self._active.pop((stream, ""), None)
                self._active[stream, source] = self._clock.seconds()

    def forget(self, stream: str, source: str) -> None:
        """Stop watching a source that has ended or has all its rows here; with an empty source, the stream itself."""
        with self._lock:
            self._active.pop((stream, source), None)

    def silent(self) -> tuple[list[Key], float | None]:
        """Return the sources that have been silent too long, and the seconds until the next one may be."""
        with self._lock:
            now = self._clock.seconds()
            left = {key: self._limits[key[0]] - (now - heard) for key, heard in self._active.items()}
        return [key for key, seconds in left.items() if seconds <= 0], min(
            (seconds for seconds in left.values() if seconds > 0), default=None
        )

    def still_silent(self, stream: str, source: str) -> bool:
        """Whether a source is still silent; if so, stop watching it until it is heard of again."""
        with self._lock:
            heard = self._active.get((stream, source))
            if heard is None or self._clock.seconds() - heard < self._limits[stream]:
                return False
            del self._active[stream, source]
            return True
