"""What rows that wait may use in one process: memory first, then disk, whatever they wait for.

Rows wait for sources that are behind, for the commit of their attempt, for readers of optional sinks, and to enter
again after a failure. Each of these has a bound of its own. There may be many of them, so they share these accounts as
well: what finds no memory goes to disk, and when that is used up, too, those who send wait (`spill_room.py`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields

from topology.graph.errors import TopologyError

MEMORY = 512 * 1024 * 1024


@dataclass(frozen=True)
class Budget:
    """What rows that wait may use in one process, all topologies in it together.

    memory: bytes of them that stay in memory. The first rows of each source do in any case, as the order is made there.
    disk:   bytes of files with the others, below one spill directory; None: all that the disk has.

    Where topologies in one process give different figures, the least ones count.
    """

    memory: int = MEMORY
    disk: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if (type(value) is not int or value < 1) and not (value is None and field.name == "disk"):
                raise TopologyError(f"Budget({field.name}={value!r}) must be a whole number of bytes above 0")


class Account:
    """Bytes that are used, and how many may be. Any thread may call it. Cost: O(1) each, for a batch at a time."""

    def __init__(self) -> None:
        self.used = 0
        self._limits: list[int] = []
        self._lock = threading.Lock()

    @property
    def most(self) -> int | None:
        """How many bytes may be used; None: any number."""
        return min(self._limits, default=None)

    def limit(self, most: int) -> None:
        """Let at most so many be used from now on; `lift` it again."""
        with self._lock:
            self._limits.append(most)

    def lift(self, most: int) -> None:
        """Lift a limit that was set before."""
        with self._lock:
            self._limits.remove(most)

    def has_room(self, size: int) -> bool:
        """Whether `take` would succeed."""
        most = self.most
        return most is None or self.used + size <= most

    def take(self, size: int) -> bool:
        """Use bytes if there is room; return whether there was."""
        with self._lock:
            if not self.has_room(size):
                return False
            self.used += size
            return True

    def add(self, size: int) -> None:
        """Count bytes that are used in any case, or, below 0, that are used no more."""
        with self._lock:
            self.used += size


waiting_memory = Account()
"""The memory of the rows that wait in this process."""
