"""The physical sources of a feed, one for each partition of its DataFrame, and the attempts that win them."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from spark_bridge.errors import restored
from spark_bridge.stage_partition import source_name
from topology import Handle, InputError, InterlaceError, Time, time_from_json

LOOKS_WHILE_IDLE = 4
"""How often a feed says that it is not idle, in the time after which it would be."""


@dataclass(frozen=True)
class Winner:
    """The attempt at a partition that counts.

    times: the smallest and the largest event time of its rows, if they were asked for and there are any.
    """

    attempt: str
    rows: int
    times: tuple[Time, Time] | None


def winner_of(status: Any) -> Winner:
    """Read the status row of a partition; raise the topology's refusal, if it is one."""
    if status.error is not None:
        raise restored(status.error)
    first, last = (None, None) if status.times is None else map(time_from_json, json.loads(status.times))
    return Winner(status.attempt, status.rows, None if first is None or last is None else (first, last))


def every_winner(stream: str, partitions: int | None, statuses: Sequence[Any]) -> list[Winner]:
    """Return the winner of each partition, in order; raise the topology's refusal, if there is one.

    partitions: how many there are; None: only Spark knows, and each has reported.
    """
    winners = {status.partition: winner_of(status) for status in statuses}
    partitions = len(statuses) if partitions is None else partitions
    if sorted(winners) != list(range(partitions)) or len(statuses) != partitions:
        raise InterlaceError(
            f"stream '{stream}': Spark ran {partitions} partitions, but {len(winners)} reported: nothing was fed"
        )
    return [winners[partition] for partition in range(partitions)]


class FeedSources:
    """The physical sources of one feed, on the driver.

    names:      those that have been announced.
    partitions: of the DataFrame, when their number is known.
    """

    def __init__(self, running: Handle, stream: str, prefix: str, feed_number: str) -> None:
        self.stream = stream
        self.prefix = prefix
        self.partitions = 0
        self.names: tuple[str, ...] = ()
        self._running = running
        self._attempts = f"{feed_number}."  # the beginning of their names
        self._nobody = f"{feed_number}.nobody"

    def announce(self, partitions: int) -> None:
        """Announce the sources of the first `partitions` partitions that have not been announced."""
        fresh = tuple(source_name(self.prefix, partition) for partition in range(len(self.names), partitions))
        self.names += fresh
        self._running.open(self.stream, *fresh)

    @contextmanager
    def awake(self) -> Iterator[None]:
        """Use it around the work of tasks: the stream is not idle meanwhile, even if they wait for a slot."""
        idle_after = self._running.topology.require_input(self.stream).idle_after
        if idle_after is None:
            yield
            return
        over = threading.Event()

        def repeat() -> None:
            while not over.wait(idle_after / LOOKS_WHILE_IDLE):
                with suppress(InterlaceError):  # the feed's own calls raise what has gone wrong
                    self._running.open(self.stream, *self.names[-1:])

        thread = threading.Thread(target=repeat, name=f"feeding {self.stream}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def commit(self, winners: Sequence[Winner]) -> int:
        """Make all winning attempts visible, even if Ctrl-C comes in between; return the number of rows."""
        try:
            self._commit(winners)
        except KeyboardInterrupt:
            self._commit(winners)  # repeating a commit changes nothing
            raise
        return sum(winner.rows for winner in winners)

    def commit_next(self, winner: Winner, last: bool) -> None:
        """Make the rows of the latest announced source visible; before that, announce the next one, unless it is last.

        So there is always a source that holds the stream back until its rows have come, except for rows before its own.
        """
        latest = self.names[-1]
        if not last:
            following = source_name(self.prefix, len(self.names))
            self.names += (following,)
            self._running.open(self.stream, following, behind=latest)
        self._running.commit(self.stream, latest, winner.attempt, winner.rows)

    def have_entered(self, number: int, rows: int) -> bool:
        """Whether so many rows of a committed source have left the staging area; waits while the topology is full."""
        return self._running.next_offset(self.stream, self.names[number]) >= rows

    def abandon(self) -> InterlaceError | None:
        """End the sources without rows, which drops the staged rows and shuts out late attempts.

        Return the topology's own failure if it prevents this, because that is the error to report. Committed sources
        are not changed.
        """
        calls: list[Callable[[], None]] = [partial(self._running.discard, self.stream, self._attempts)]
        calls += [partial(self._running.commit, self.stream, source, self._nobody, 0) for source in self.names]
        for call in calls:
            try:
                call()
            except InputError:
                continue
            except InterlaceError as failure:
                return failure
        return None

    def _commit(self, winners: Sequence[Winner]) -> None:
        for source, winner in zip(self.names, winners, strict=False):
            self._running.commit(self.stream, source, winner.attempt, winner.rows)
        for source in self.names[len(winners) :]:  # announced, but the DataFrame has no partitions
            self._running.commit(self.stream, source, self._nobody, 0)


_prefixes: weakref.WeakKeyDictionary[Handle, dict[str, list[str]]] = weakref.WeakKeyDictionary()
_prefixes_lock = threading.Lock()


def new_prefix(running: Handle, stream: str, wanted: str | None) -> str:
    """Return the prefix of a feed's sources: the wanted one, or one with the number of feeds to that stream so far."""
    with _prefixes_lock:
        used = _prefixes.setdefault(running, {}).setdefault(stream, [])
        prefix = f"{stream}/{len(used):04d}" if wanted is None else wanted
        if not prefix or prefix in used:
            raise InputError(f"stream '{stream}': source_prefix {prefix!r} is empty or has been used: choose another")
        used.append(prefix)
        return prefix
