"""Feeding a DataFrame to a running topology, from the executors straight to its door."""

from __future__ import annotations

import threading
import time
import uuid
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from spark_bridge.errors import restored
from spark_bridge.progress import FeedProgress
from spark_bridge.reports import new_reports
from spark_bridge.schemas import arrow_schema
from spark_bridge.session import require_classic, without_pandas_warning
from spark_bridge.staging_task import STATUS, StagePartition, source_name
from spark_bridge.tagged_jobs import tagged_jobs
from topology import Handle, InputError, InterlaceError, check_event_time


@dataclass(frozen=True)
class FeedReport:
    """What was fed. `sources` are the physical sources, one per partition of the DataFrame, in their order."""

    stream: str
    rows: int
    partitions: int
    seconds: float
    sources: tuple[str, ...]


def feed(
    df: DataFrame,
    running: Handle,
    stream: str = "R",
    event_time: str | None = None,
    *,
    ties: Sequence[str] = (),
    presorted: bool = False,
    source_prefix: str | None = None,
    progress: bool = True,
) -> FeedReport:
    """Send all rows of a DataFrame to an input stream; returns when they are committed, not when they are processed.

    Each partition becomes a physical source, `<prefix>/<partition>`, complete when fed; a later feed adds sources. Rows
    become visible together, when the last partition has been staged: so any number of partitions may share any number
    of executor slots, retries and speculative copies leave no trace, and a feed that fails or is interrupted adds no
    row. The topology stays usable then.

    event_time:    the event-time column; None: the one that the topology declares for the stream, if it does.
    ties:          columns that order rows of equal event time within a partition. Without them such rows keep the
                   order in which Spark delivers them, which Spark does not promise to be the same in another run.
    presorted:     each partition is in event-time order already: do not sort. Rows that are not are refused, or late
                   beyond the stream's out_of_order= if it has one.
    source_prefix: the beginning of the sources' names, `<stream>/<number of the feed>` if None. Names take part in the
                   order of rows: of two rows of equal event time, that of the source with the lower name comes first.
    progress:      show a bar on stderr, or a line at the end if that is no terminal.

    Feed every part of a stream before the last stream gets its first rows, or as one DataFrame: when all streams have
    sources, rows pass in event-time order, and a part fed afterwards may be late for its time.
    """
    require_classic(df)
    if df.isStreaming:
        raise InputError(f"stream '{stream}': a streaming DataFrame cannot be fed; read it with spark.read")
    declared = running.topology.require_input(stream)
    if event_time is not None and event_time != declared.event_time:
        raise InputError(
            f"stream '{stream}': feed() names '{event_time}' as event time, but the topology was built with "
            f"{repr(declared.event_time) if declared.event_time else 'none (arrival order)'}: name the same in both"
        )
    started = time.monotonic()
    schema = arrow_schema(df, stream, declared.schema)
    if declared.event_time is not None:
        check_event_time(stream, schema, declared.event_time)
    running.pin(stream, schema)
    if declared.event_time is not None and not presorted:
        df = df.sortWithinPartitions(*(_column(name) for name in (declared.event_time, *ties)))
    context = df.sparkSession.sparkContext
    reports = new_reports(context)
    number = uuid.uuid4().hex
    sources = _Sources(running, stream, _new_prefix(running, stream, source_prefix), number)
    task = StagePartition(running.endpoint(stream), stream, sources.prefix, number, schema, reports)
    try:
        sources.announce(1)  # the stream is held from here on, while Spark finds out how many there will be
        with tagged_jobs(context, f"interlace-feed-{number}"):
            with without_pandas_warning():
                statuses = df.mapInArrow(task, STATUS).rdd  # runs the stages before the last, if there are any
            partitions = statuses.getNumPartitions()
            sources.announce(partitions)
            with FeedProgress(stream, partitions, reports, progress):
                winners = _winners(stream, partitions, statuses.collect())
        sources.commit(winners)
    except BaseException as error:
        failure = sources.abandon()
        if failure is not None and isinstance(error, Exception) and not isinstance(error, InterlaceError):
            raise failure from error  # the topology failed first; that Spark's job failed is a consequence
        raise
    return FeedReport(
        stream, sum(rows for _, rows in winners), partitions, time.monotonic() - started, sources.names[:partitions]
    )


class _Sources:
    """The physical sources of one feed, on the driver."""

    def __init__(self, running: Handle, stream: str, prefix: str, feed_number: str) -> None:
        self.prefix = prefix
        self.names: tuple[str, ...] = ()
        self._running = running
        self._stream = stream
        self._nobody = f"{feed_number}.nobody"

    def announce(self, partitions: int) -> None:
        """Announce the sources of so many partitions, as far as they have not been."""
        fresh = tuple(source_name(self.prefix, partition) for partition in range(len(self.names), partitions))
        self.names += fresh
        self._running.open(self._stream, *fresh)

    def commit(self, winners: Sequence[tuple[str, int]]) -> None:
        """Make the winning attempts visible: all of them, even if Ctrl-C comes in between."""
        try:
            self._commit(winners)
        except KeyboardInterrupt:
            self._commit(winners)  # repeating a commit changes nothing
            raise

    def abandon(self) -> InterlaceError | None:
        """End the sources without rows, which frees what was staged and shuts out late attempts.

        Returns what keeps the topology from doing so, for then that is the error to report. Sources that were committed
        stay as they are.
        """
        for source in self.names:
            try:
                self._running.commit(self._stream, source, self._nobody, 0)
            except InputError:
                continue
            except InterlaceError as failure:
                return failure
        return None

    def _commit(self, winners: Sequence[tuple[str, int]]) -> None:
        for source, (attempt, rows) in zip(self.names, winners, strict=False):
            self._running.commit(self._stream, source, attempt, rows)
        for source in self.names[len(winners) :]:  # announced for a DataFrame that turned out to have no partitions
            self._running.commit(self._stream, source, self._nobody, 0)


def _winners(stream: str, partitions: int, statuses: Sequence[Any]) -> list[tuple[str, int]]:
    """The attempt and the rows of each partition; raises what the topology refused."""
    for status in statuses:
        if status.error is not None:
            raise restored(status.error)
    winners = {status.partition: (status.attempt, status.rows) for status in statuses}
    if sorted(winners) != list(range(partitions)) or len(statuses) != partitions:
        raise InterlaceError(
            f"stream '{stream}': Spark ran {partitions} partitions, but {len(winners)} reported: nothing was fed"
        )
    return [winners[partition] for partition in range(partitions)]


_prefixes: weakref.WeakKeyDictionary[Handle, dict[str, list[str]]] = weakref.WeakKeyDictionary()
_prefixes_lock = threading.Lock()


def _new_prefix(running: Handle, stream: str, wanted: str | None) -> str:
    """The prefix of a feed's sources: as wanted, or made of the number of feeds to that stream so far."""
    with _prefixes_lock:
        used = _prefixes.setdefault(running, {}).setdefault(stream, [])
        prefix = f"{stream}/{len(used):04d}" if wanted is None else wanted
        if not prefix or prefix in used:
            raise InputError(f"stream '{stream}': source_prefix {prefix!r} is empty or has been used: choose another")
        used.append(prefix)
        return prefix


def _column(name: str) -> Any:
    """The column of exactly that name, whatever characters are in it."""
    return sql.col("`" + name.replace("`", "``") + "`")
