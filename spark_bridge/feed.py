"""Feeds a DataFrame to a running topology; executors send the rows straight to it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from pyspark.sql import DataFrame

from spark_bridge.deployment import prepare_executors
from spark_bridge.feed_checks import checked_schema, chosen, column, require_event_time, require_turns, sent_columns
from spark_bridge.feed_sources import FeedSources, every_winner, new_prefix
from spark_bridge.partitions_in_turn import PartitionsInTurn
from spark_bridge.progress import FeedProgress
from spark_bridge.reports import CountedAtTheEnd, new_reports
from spark_bridge.session import is_connected, without_pandas_warning
from spark_bridge.stage_partition import STATUS, StagePartition
from spark_bridge.streaming_feed import StreamingFeed, start_feed
from spark_bridge.tagged_jobs import tagged_work
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
    through: bool = False,
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
    through: bool = False,
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
    through:       let partitions pass into the topology one after the other while others are read, instead of all
                   together at the end. The DataFrame is sorted as a whole, not only within its partitions; with
                   `presorted`, partition after partition must be in event-time order already, or the feed fails. A few
                   partitions are staged at a time, as many as Spark has slots and one more. So the call waits while the
                   topology waits for another stream. A feed that fails has let a beginning of its rows in. Not from
                   a session of Spark Connect, which cannot run a single partition.
    source_prefix: the beginning of the sources' names; so is `name`. None: `<stream>/<number of the feed>`. Names
                   matter for the order of rows: of two rows of equal event time, the one whose source has the lower
                   name comes first.
    progress:      show a bar on stderr, or a line at the end if stderr is no terminal.

    Feed every part of a stream before the last stream gets its first rows, or feed it as one DataFrame. Once all
    streams have sources, rows pass in event-time order, and a part that is fed afterwards may be late.
    """
    require_event_time(running, stream, event_time)
    if df.isStreaming:
        _refuse(
            "a streaming DataFrame",
            stream,
            ties=ties,
            presorted=presorted,
            through=through,
            source_prefix=source_prefix,
        )
        return start_feed(df, running, stream, name, checkpoint, trigger)
    _refuse("a bounded DataFrame", stream, checkpoint=checkpoint, trigger=trigger)
    if name is not None and source_prefix is not None:
        raise InputError(f"stream '{stream}': name= and source_prefix= mean the same: give one of them")
    connected = is_connected(df)
    declared = running.topology.require_input(stream)
    if through:
        require_turns(running, stream, connected)
    started = time.monotonic()
    sent = sent_columns(df, running, stream)
    schema = checked_schema(chosen(df, sent), running, stream)
    if declared.event_time is not None and not presorted:
        order = [column(name) for name in (declared.event_time, *ties)]
        df = df.orderBy(*order) if through else df.sortWithinPartitions(*order)
    df = chosen(df, sent)
    prepare_executors(df.sparkSession, running.endpoint(stream))
    number = uuid.uuid4().hex
    sources = FeedSources(running, stream, new_prefix(running, stream, source_prefix or name), number)
    reports = None if connected else new_reports(df.sparkSession.sparkContext)
    times_of = declared.event_time if through else None
    stage = StagePartition(running.endpoint(stream), stream, sources.prefix, number, schema, reports, times_of)
    tag = f"interlace-feed-{number}"
    try:
        sources.announce(1)  # holds the stream back while Spark determines the number of partitions
        with tagged_work(df.sparkSession, tag), without_pandas_warning(), sources.awake():
            if connected:
                rows = _feed_when_all_have_reported(df, running, stage, sources, progress)
            else:
                rows = _feed_known_partitions(df, running, stage, sources, progress, tag if through else None)
    except BaseException as error:
        failure = sources.abandon()
        if failure is not None and isinstance(error, Exception) and not isinstance(error, InterlaceError):
            raise failure from error  # the topology failed first, and Spark's job because of it
        raise
    partitions = sources.partitions
    return FeedReport(stream, rows, partitions, time.monotonic() - started, sources.names[:partitions])


def _feed_known_partitions(
    df: DataFrame, running: Handle, stage: StagePartition, sources: FeedSources, progress: bool, in_turn: str | None
) -> int:
    """Feed from a classic session; return the number of rows. `in_turn`: the tag of jobs for one partition each."""
    statuses = df.mapInArrow(stage, STATUS).rdd  # runs all stages before the last one
    sources.partitions = statuses.getNumPartitions()
    with FeedProgress(sources.stream, sources.partitions, stage.reports, progress, running=running):
        if in_turn is not None:
            return PartitionsInTurn(sources, df.sparkSession.sparkContext, in_turn, statuses).run()
        sources.announce(sources.partitions)
        return sources.commit(every_winner(sources.stream, sources.partitions, statuses.collect()))


def _feed_when_all_have_reported(
    df: DataFrame, running: Handle, stage: StagePartition, sources: FeedSources, progress: bool
) -> int:
    """Feed from a session of Spark Connect, which has no RDD and no accumulator; return the number of rows."""
    reports = CountedAtTheEnd()
    with FeedProgress(sources.stream, None, reports, progress, running=running):
        winners = every_winner(sources.stream, None, df.mapInArrow(stage, STATUS).collect())
        reports.value = [winner.rows for winner in winners]
        sources.partitions = len(winners)
        sources.announce(sources.partitions)  # before any is committed, as the first one holds the stream back
        return sources.commit(winners)


def _refuse(what: str, stream: str, **options: object) -> None:
    """Refuse options that have no effect on this kind of DataFrame."""
    given = [name for name, value in options.items() if value]
    if given:
        raise InputError(f"stream '{stream}': {given[0]}= has no effect on {what}: leave it out")
