"""Feeds a DataFrame to a running topology; executors send the rows straight to it."""

from __future__ import annotations

import threading
import time
import uuid
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from spark_bridge.deployment import prepare_executors
from spark_bridge.errors import restored
from spark_bridge.feed_checks import checked_schema, require_event_time
from spark_bridge.progress import FeedProgress
from spark_bridge.reports import new_reports
from spark_bridge.session import require_classic, without_pandas_warning
from spark_bridge.stage_partition import STATUS, StagePartition, source_name
from spark_bridge.streaming_feed import StreamingFeed, start_feed
from spark_bridge.tagged_jobs import tagged_jobs
from topology import Handle, InputError, InterlaceError


@dataclass(frozen=True)
class FeedReport:
    """The result of a feed. `sources` are the physical sources, one per partition of the DataFrame, in order."""

    stream: str
    rows: int
    partitions: int
    seconds: float
    sources: tuple[str, ...]


@overload
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
    name: str | None = None,
) -> FeedReport: ...


@overload
def feed(
    df: DataFrame,
    running: Handle,
    stream: str = "R",
    event_time: str | None = None,
    *,
    name: str | None = None,
    checkpoint: str | Path,
    trigger: str | Mapping[str, Any] | None = None,
) -> StreamingFeed: ...


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
    name: str | None = None,
    checkpoint: str | Path | None = None,
    trigger: str | Mapping[str, Any] | None = None,
) -> FeedReport | StreamingFeed:
    """Send all rows of a DataFrame to an input stream.

    **A streaming DataFrame** starts a query, whose handle is returned at once. Every micro-batch enters once and whole,
    as a part of one source.

    name:          of the feed, which belongs to this query; None: that of the stream.
    checkpoint:    where Spark keeps how far the query is; None: where `spark.sql.streaming.checkpointLocation` says.
    trigger:       how often there is a micro-batch, such as "200 milliseconds", or the arguments of Spark's `trigger`,
                   such as {"availableNow": True}; None: as soon as there are rows.

    **A bounded one** is sent now; returns a `FeedReport` when all rows are committed, not when they are processed. Each
    partition becomes a physical source, `<prefix>/<partition>`, which is complete after the feed; a later feed
    adds sources. All rows become visible together, when the last partition has been staged. So any number of partitions
    may share any number of executor slots, retries and speculative copies leave no trace, and a feed that fails or is
    interrupted adds no row and leaves the topology usable.

    event_time:    the event-time column; None: the one that the topology declares for the stream, if any.
    ties:          columns that order rows of equal event time within a partition. Without them such rows keep the
                   order in which Spark delivers them, which may differ in another run.
    presorted:     each partition is in event-time order already: do not sort. Rows out of order are refused, or late
                   if they exceed the bound of a stream with out_of_order=.
    source_prefix: the beginning of the sources' names; so is `name`. None: `<stream>/<number of the feed>`. Names
                   matter for the order of rows: of two rows of equal event time, the one whose source has the lower
                   name comes first.
    progress:      show a bar on stderr, or a line at the end if stderr is no terminal.

    Feed every part of a stream before the last stream gets its first rows, or feed it as one DataFrame. Once all
    streams have sources, rows pass in event-time order, and a part that is fed afterwards may be late.
    """
    require_event_time(running, stream, event_time)
    if df.isStreaming:
        _refuse("a streaming DataFrame", stream, ties=ties, presorted=presorted, source_prefix=source_prefix)
        return start_feed(df, running, stream, name, checkpoint, trigger)
    _refuse("a bounded DataFrame", stream, checkpoint=checkpoint, trigger=trigger)
    if name is not None and source_prefix is not None:
        raise InputError(f"stream '{stream}': name= and source_prefix= mean the same: give one of them")
    require_classic(df)
    declared = running.topology.require_input(stream)
    started = time.monotonic()
    df = _in_known_order(df, running.schema(stream))
    schema = checked_schema(df, running, stream)
    if declared.event_time is not None and not presorted:
        df = df.sortWithinPartitions(*(_column(name) for name in (declared.event_time, *ties)))
    prepare_executors(df.sparkSession, running.endpoint(stream))
    context = df.sparkSession.sparkContext
    reports = new_reports(context)
    number = uuid.uuid4().hex
    sources = _Sources(running, stream, _new_prefix(running, stream, source_prefix or name), number)
    stage = StagePartition(running.endpoint(stream), stream, sources.prefix, number, schema, reports)
    try:
        sources.announce(1)  # holds the stream back while Spark determines the number of partitions
        with tagged_jobs(context, f"interlace-feed-{number}"):
            with without_pandas_warning():
                statuses = df.mapInArrow(stage, STATUS).rdd  # runs all stages before the last one
            partitions = statuses.getNumPartitions()
            sources.announce(partitions)
            with FeedProgress(stream, partitions, reports, progress, running=running):
                winners = _winners(stream, partitions, statuses.collect())
        sources.commit(winners)
    except BaseException as error:
        failure = sources.abandon()
        if failure is not None and isinstance(error, Exception) and not isinstance(error, InterlaceError):
            raise failure from error  # the topology failed first, and Spark's job because of it
        raise
    return FeedReport(
        stream, sum(rows for _, rows in winners), partitions, time.monotonic() - started, sources.names[:partitions]
    )


def _in_known_order(df: DataFrame, known: pa.Schema | None) -> DataFrame:
    """Put columns in the order of those that the stream has had before, if they have the same names."""
    if known is None or df.columns == known.names or sorted(df.columns) != sorted(known.names):
        return df
    return df.select(*map(_column, known.names))


def _refuse(what: str, stream: str, **options: object) -> None:
    """Refuse options that have no effect on this kind of DataFrame."""
    given = [name for name, value in options.items() if value]
    if given:
        raise InputError(f"stream '{stream}': {given[0]}= has no effect on {what}: leave it out")


class _Sources:
    """The physical sources of one feed, on the driver."""

    def __init__(self, running: Handle, stream: str, prefix: str, feed_number: str) -> None:
        self.prefix = prefix
        self.names: tuple[str, ...] = ()
        self._running = running
        self._stream = stream
        self._nobody = f"{feed_number}.nobody"

    def announce(self, partitions: int) -> None:
        """Announce the sources of the first `partitions` partitions that have not been announced."""
        fresh = tuple(source_name(self.prefix, partition) for partition in range(len(self.names), partitions))
        self.names += fresh
        self._running.open(self._stream, *fresh)

    def commit(self, winners: Sequence[tuple[str, int]]) -> None:
        """Make all winning attempts visible, even if Ctrl-C comes in between."""
        try:
            self._commit(winners)
        except KeyboardInterrupt:
            self._commit(winners)  # repeating a commit changes nothing
            raise

    def abandon(self) -> InterlaceError | None:
        """End the sources without rows, which drops the staged rows and shuts out late attempts.

        Return the topology's own failure if it prevents this, because that is the error to report. Committed sources
        are not changed.
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
        for source in self.names[len(winners) :]:  # announced, but the DataFrame has no partitions
            self._running.commit(self._stream, source, self._nobody, 0)


def _winners(stream: str, partitions: int, statuses: Sequence[Any]) -> list[tuple[str, int]]:
    """Return the attempt and the row count of each partition; raise the topology's refusal, if there is one."""
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
    """Return the prefix of a feed's sources: the wanted one, or one with the number of feeds to that stream so far."""
    with _prefixes_lock:
        used = _prefixes.setdefault(running, {}).setdefault(stream, [])
        prefix = f"{stream}/{len(used):04d}" if wanted is None else wanted
        if not prefix or prefix in used:
            raise InputError(f"stream '{stream}': source_prefix {prefix!r} is empty or has been used: choose another")
        used.append(prefix)
        return prefix


def _column(name: str) -> Any:
    """Return the column of exactly that name, whatever characters it contains."""
    return sql.col("`" + name.replace("`", "``") + "`")
