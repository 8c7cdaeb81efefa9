"""How much disk space the logs of a process may use together."""

from __future__ import annotations

import threading


class DiskBudget:
    """Counts the bytes of all logs that share it. More than `limit` is back-pressure and not an error: see `has_room`.

    limit: None for no limit of ours; the disk has its own.
    """

    def __init__(self, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise ValueError(f"a disk budget of {limit} bytes leaves no room: give 1 or more, or None for no limit")
        self.limit = limit
        self.used = 0
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        """Count bytes that a log keeps, or (negative) no longer keeps."""
        with self._lock:  # logs have threads of their own
            self.used += count

    @property
    def has_room(self) -> bool:
        """Whether less than the limit is used."""
        return self.limit is None or self.used < self.limit
