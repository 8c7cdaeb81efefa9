"""A lease: someone is taken to be alive as long as the lease is renewed in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

RENEWAL_SECONDS = 1.0
"""How often a lease is renewed."""


@dataclass(frozen=True)
class LeaseSeconds:
    """How long everyone may be silent before others take them to be gone.

    owner:  the program that launched a topology: without a renewal for so long it has lost the topology. The topology
            ends if the program has died, and anyone may take its name if the program is only too busy to answer.
    worker: a worker, for its controller; and the controller, for its workers and clients. It is longer than the
            owner's: a worker on a busy machine may compile a kernel for seconds, and a death is usually noticed at once
            by Ray. This lease is for processes that are frozen and nodes that are cut off.
    """

    owner: float = 10.0
    worker: float = 20.0

    @property
    def patience(self) -> float:
        """How long a topology goes on without its owner, as long as Ray says that the program is alive."""
        return 6 * self.owner

    @property
    def blame(self) -> float:
        """How long to wait before blaming a task that lost its connection: whoever broke it may be found meanwhile."""
        return self.worker + 5.0


class WakingClock:
    """The seconds in which this process could have noticed a renewal.

    A process that does not get the processor for a while finds everybody's lease lapsed when it wakes, because the
    renewals are still waiting to be read. So the clock moves only when it is told to, and never far at once.
    """

    def __init__(self, most: float = 2 * RENEWAL_SECONDS, now: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._now = now
        self._seen = now()
        self._seconds = 0.0

    def tick(self) -> None:
        """Move the clock by what has passed since the last tick, but not by more than a pause between two ticks."""
        now = self._now()
        self._seconds += min(now - self._seen, self._most)
        self._seen = now

    def __call__(self) -> float:
        return self._seconds


class Lease:
    """Counts the seconds since the last renewal."""

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._now = now
        self._renewed = now()

    def renew(self) -> None:
        """Begin the time anew."""
        self._renewed = self._now()

    @property
    def silent(self) -> float:
        """Seconds since the last renewal."""
        return self._now() - self._renewed

    @property
    def lapsed(self) -> bool:
        """Whether it was not renewed in time."""
        return self.silent > self.seconds
