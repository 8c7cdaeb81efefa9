"""Ends a topology together with the query that reads its results, for programs that hold no handle of the topology."""

from __future__ import annotations

import atexit
import json
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener

from spark_bridge.results_stream_reader import RUN
from spark_bridge.streaming_feed import StreamingFeed

LOOK_SECONDS = 1.0
"""How often to look whether the feeds run: when a session stops, nobody is told."""

log = logging.getLogger("interlace")


class EndsWithQuery(StreamingQueryListener):
    """Waits for the first end of: a query that reads the results, a feed, the session, the program. Then ends the rest.

    Spark tells of the micro-batches of all queries with their offsets, and the offsets of a reading query name the run.
    So a query belongs to the run from its first micro-batch on.

    run:  the option `run` of the DataFrame of results.
    feeds: what feeds the topology; more may be added until `start`.
    stop: stops the topology; called once, after the feeds have been stopped.
    """

    def __init__(self, spark: SparkSession, run: str, feeds: Sequence[StreamingFeed], stop: Callable[[], None]) -> None:
        self._spark = spark
        self._run = run
        self._feeds = feeds
        self._stop = stop
        self._readers: set[str] = set()
        self._over = threading.Event()
        self._ending = threading.Lock()
        self._ended = False

    def start(self) -> None:
        """Begin to watch."""
        self._spark.streams.addListener(self)
        atexit.register(self.end)
        threading.Thread(target=self._watch, name="end of a streaming join", daemon=True).start()

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  Spark's name
        """Do nothing: which source a query reads is not known yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802  Spark's name
        """Note a query that has read results of this run."""
        if any(_run_of(source.endOffset) == self._run for source in event.progress.sources):
            self._readers.add(str(event.progress.runId))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802  Spark's name
        """Do nothing."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802  Spark's name
        """Let everything end with the query that has read results."""
        if str(event.runId) in self._readers:
            self._over.set()

    def end(self) -> None:
        """Stop the feeds and the topology; harmless when repeated."""
        with self._ending:
            if self._ended:
                return
            self._ended = True
            self._over.set()
            atexit.unregister(self.end)
            for feed in self._feeds:
                self._say_why(feed)
                with suppress(Exception):  # the session may be gone
                    feed.stop()
            with suppress(Exception):
                self._spark.streams.removeListener(self)
            try:
                self._stop()
            except Exception:
                log.exception("while a streaming join ended")

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS) and self._feeds_run():
            pass
        self.end()

    def _feeds_run(self) -> bool:
        try:
            return all(feed.isActive for feed in self._feeds)
        except Exception:
            return False  # there is no session to ask

    def _say_why(self, feed: StreamingFeed) -> None:
        with suppress(Exception):
            error = None if feed.isActive else feed.exception()
            if error is not None:
                log.error("the feed of stream '%s' has failed, and the join ends: %s", feed.stream, error)


def _run_of(offset: str | None) -> object:
    """The run that an offset of any source of Spark names; None if it names none."""
    try:
        content = json.loads(offset or "null")
    except ValueError:
        return None
    return content.get(RUN) if isinstance(content, dict) else None
