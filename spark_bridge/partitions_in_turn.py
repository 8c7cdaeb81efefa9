"""Lets the partitions of a DataFrame into a stream one after the other, while others are staged.

Each partition is a source, as in every feed, and its rows are staged by attempts of which one is committed: so retries
and speculative copies leave no trace, also if they have other rows. But the driver commits a partition as soon as all
before it are committed, and it starts a task only when few partitions are staged that have not entered. Because
partitions follow each other in event time, one open source is enough to hold the stream back.

    slots: 2            started   staged   committed   entered
    at first            0 1 2
    1 is staged         0 1 2     1
    0 is staged         0 1 2     1        0 1
    0 has entered       1 2 3              1           0            3 may start, 4 not yet

A task never waits for another or for room in the topology: it stages its rows, which go to disk, and ends. So any
number of partitions passes through any number of slots, and a partition that is tried again gets a slot: of the jobs
that wait for one, its job is the oldest.
"""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from spark_bridge.feed_sources import FeedSources, Winner, winner_of
from spark_bridge.tagged_jobs import tagged_jobs
from topology import OutOfOrderError, Time

LOOK_UP_SECONDS = 0.05
"""How often to look whether rows have entered."""


class PartitionsInTurn:
    """One feed: `statuses` is the RDD that stages, with one status row for each partition."""

    def __init__(self, sources: FeedSources, context: Any, tag: str, statuses: Any) -> None:
        self._sources = sources
        self._context = context
        self._tag = tag
        self._statuses = statuses
        self._partitions: int = statuses.getNumPartitions()
        self._staged_at_most: int = context.defaultParallelism + 1
        self._started: list[Future[Winner]] = []
        self._committed: list[Winner] = []
        self._entered = 0
        self._latest: Time | None = None

    def run(self) -> int:
        """Feed all partitions; return the number of rows when the last one is committed."""
        if not self._partitions:
            self._sources.commit([])
            return 0
        with ThreadPoolExecutor(self._staged_at_most, "feeding a partition") as threads:
            try:
                while len(self._committed) < self._partitions:
                    self._start(threads)
                    self._commit()
                    self._look()
            except BaseException:
                while wait(self._started, LOOK_UP_SECONDS).not_done:  # a job may just have started
                    self._context.cancelJobsWithTag(self._tag)
                raise
        return sum(winner.rows for winner in self._committed)

    def _start(self, threads: ThreadPoolExecutor) -> None:
        """Start tasks, in the order of partitions, up to the bound."""
        for partition in range(len(self._started), min(self._partitions, self._entered + self._staged_at_most)):
            self._started.append(threads.submit(self._stage, partition))

    def _stage(self, partition: int) -> Winner:
        with tagged_jobs(self._context, self._tag):
            (status,) = self._context.runJob(self._statuses, list, [partition])
        return winner_of(status)

    def _commit(self) -> None:
        """Commit partitions whose turn it is; wait a little if there is none."""
        number = len(self._committed)
        if number == len(self._started):  # all that may be staged wait for the topology
            time.sleep(LOOK_UP_SECONDS)
        wait(self._started[number : number + 1], LOOK_UP_SECONDS)
        while number < len(self._started) and self._started[number].done():
            winner = self._started[number].result()
            self._check_turn(number, winner)
            self._sources.commit_next(winner, number + 1 == self._partitions)
            self._committed.append(winner)
            number += 1

    def _look(self) -> None:
        """Count the partitions that have entered, if that decides whether another may start."""
        if len(self._started) < self._partitions:
            while self._entered < len(self._committed):
                if not self._sources.have_entered(self._entered, self._committed[self._entered].rows):
                    return
                self._entered += 1

    def _check_turn(self, partition: int, winner: Winner) -> None:
        if winner.times is None:
            return
        first, last = winner.times
        if self._latest is not None and first < self._latest:
            raise OutOfOrderError(
                f"stream '{self._sources.stream}': partition {partition} has the event time {first}, and one before it "
                f"{self._latest}: with through=True and presorted=True partitions must follow each other in time; "
                f"leave out presorted, and the DataFrame is sorted"
            )
        self._latest = last
