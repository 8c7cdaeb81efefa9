"""The interface that programs hold while something runs: send rows, read results, watch, stop."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from html import escape
from types import TracebackType
from typing import Any, Literal, Self, overload

import pyarrow as pa

from topology.entry.frames import Rows
from topology.graph.errors import InterlaceError
from topology.graph.graph import Topology
from topology.handle.endpoint import Endpoint
from topology.handle.live_line import Rate, in_notebook
from topology.handle.log_lines import LogLine
from topology.handle.results import Reading, Results, numbered_results, plain_results
from topology.handle.status import State, Status
from topology.handle.watched_reading import WatchedReading
from topology.tasks.metrics import Metrics

log = logging.getLogger("interlace")


class Handle(ABC):
    """A running topology, or something that runs as one. Leaving a `with` block stops it; nothing is left running."""

    name: str
    """The name under which it runs."""

    _explained_timeout = ""

    @property
    @abstractmethod
    def topology(self) -> Topology:
        """The graph that runs."""

    @abstractmethod
    def send(self, stream: str, rows: Rows, source: str | None = None, *, offset: int | None = None) -> int:
        """Send the next rows of a source (by default one source named after the stream).

        rows: an Arrow table, record batch or reader, a pandas or Polars frame, a DuckDB relation, a dict of columns, a
              list of dicts, or anything with `__arrow_c_stream__` or `__arrow_c_array__`.

        Waits for room: a slow reader of the results makes `send` wait. In this process the rows have been taken when it
        returns, and an `InputError` says that rows do not fit the stream and nothing has changed. A topology in other
        processes gets rows ahead of its answers. Then a refusal may be raised by a later call of `send`, `flush` or
        `finish`; its `rows_taken` says how many rows sent to the stream have been taken, and nothing behind them has.
        The first rows of a stream and of a source are always answered before `send` returns.

        Return the next offset: how many rows the source has sent so far, these included, if all are taken.

        offset: that of the first row, so that a program that does not know what was taken can send again: rows that are
                there already are dropped, also part of a batch, without comparing them. Rows beyond the next offset
                raise an `OffsetGapError` at once, and nothing changes.
        """

    @abstractmethod
    def next_offset(self, stream: str, source: str | None = None) -> int:
        """Return how many rows of a source have been taken: the offset of its next row; 0 if the source is not known.

        Waits until the rows that this handle has sent have been taken.
        """

    @abstractmethod
    def flush(self, timeout: float | None = None) -> None:
        """Wait until the topology has taken all rows that were sent; raises the `InputError` if it refused some.

        timeout: seconds after which to raise `TimeoutError`; the rows are still on their way then.
        """

    @abstractmethod
    def open(self, stream: str, *sources: str, behind: str | None = None) -> None:
        """Announce physical sources before they send, so that none of their rows can come too late.

        Repeated, it says that the sources are not idle, for as long as `idle_after` says.

        behind: of sources whose rows are staged: one whose rows they follow in event time. They do not hold it back.
        """

    @abstractmethod
    def finish(self, stream: str | None = None, source: str | None = None) -> None:
        """Declare that no more rows will come: from one source, from one stream, or (without arguments) from any.

        `results()` comes to its end when all streams are finished and their results have been read.
        """

    @overload
    def results(
        self,
        sink: str | None = None,
        timeout: float | None = None,
        *,
        after: int | None = None,
        numbered: Literal[False] = False,
        take_over: bool = False,
    ) -> Results[pa.RecordBatch]: ...

    @overload
    def results(
        self,
        sink: str | None = None,
        timeout: float | None = None,
        *,
        after: int | None = None,
        numbered: Literal[True],
        take_over: bool = False,
    ) -> Results[tuple[int, pa.RecordBatch]]: ...

    def results(
        self,
        sink: str | None = None,
        timeout: float | None = None,
        *,
        after: int | None = None,
        numbered: bool = False,
        take_over: bool = False,
    ) -> Results[Any]:
        """Iterate over what reaches a sink, in order; ends when everything has been finished and read.

        Rows are numbered from 0, and kept until they are acknowledged; kept rows are bounded in bytes, and a full sink
        makes `send` wait. Reading begins at once, with the first row that nobody has acknowledged. A plain loop
        acknowledges a batch by asking for the next, or for the end. So one that breaks off, or fails in its body, loses
        nothing: the next reader gets the batch that it had in hand, and all after it. With `numbered` or `after`
        nothing is acknowledged except by `acknowledge`.

        timeout:   stop iterating after this many seconds without rows; call again to go on. If there were none at all,
                   the log says what `waiting_for` knows, once.
        after:     begin after the row of this number, which a reader has been given; -1: at the start. Raises an
                   `AcknowledgedError` that names the first row that is kept, if rows behind `after` are gone.
        numbered:  yield pairs: the number of the first row, and the batch.
        take_over: end the iteration of another reader, in any process, by a `TakenOverError`. Without it a second
                   reader is refused with a `SinkHasReaderError` while the first has not left.

        Raises a `StoppedError` if the topology is stopped before the end, so that part of a result never looks whole.
        """
        reading = self.open_reader(sink, after, take_over)
        if in_notebook():
            reading = WatchedReading(reading, partial(self._progress_line, Rate()))
        if numbered:
            return numbered_results(reading, timeout, self._explain_timeout)
        return plain_results(reading, timeout, after is None, self._explain_timeout)

    @abstractmethod
    def open_reader(self, sink: str | None, after: int | None, take_over: bool) -> Reading:
        """Begin to read a sink; what `results` iterates over."""

    @abstractmethod
    def acknowledge(self, number: int, sink: str | None = None) -> None:
        """Say that all rows of a sink up to and including `number` have been dealt with: nobody gets them again.

        Harmless when repeated. Rows that no reader has been given are refused. With a store, that is durable when this
        returns; what a plain loop acknowledges by going on becomes durable a little later.
        """

    @abstractmethod
    def metrics(self) -> Metrics:
        """Return what each task has counted so far."""

    @abstractmethod
    def status(self) -> Status:
        """Return whether it runs, and in which processes."""

    @abstractmethod
    def endpoint(self, stream: str, control: bool = False) -> Endpoint:
        """Return where other processes send the rows of an input, or read those of a sink, over Arrow Flight.

        Its token allows to send and to stage rows of that one stream; with `control` also to commit and to finish it.
        """

    @abstractmethod
    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        """Make visible what other processes staged for a source; see `Ingest.commit`."""

    @abstractmethod
    def discard(self, stream: str, attempts: str) -> None:
        """Drop what other processes staged and nobody will commit; see `Ingest.discard`."""

    @abstractmethod
    def pin(self, stream: str, schema: pa.Schema) -> None:
        """Fix the schema of a stream before its rows come; raises a `SchemaError` if it does not fit."""

    @abstractmethod
    def schema(self, stream: str) -> pa.Schema | None:
        """Return the schema of a stream's rows; None while no rows have come and nobody has pinned it."""

    @abstractmethod
    def rebalance(self, **counts: Any) -> None:
        """Go on with another number of tasks, from the journal: results, their numbers and their order stay the same.

        counts: the new number of tasks of each component, by its name, with _ for -.

        Whoever sends rows or reads results waits a moment and goes on by itself. Only with a state (`launch` with
        `LocalRuntime(state=...)` or `RayRuntime(state=...)`); a `TopologyError` says what cannot be changed, and then
        nothing has. Metrics begin at 0 again.
        """

    @abstractmethod
    def savepoint(self) -> str:
        """Copy everything that is needed to go on from here, below the place of the state; return where the copy is.

        It holds all that was acknowledged before this call: rows that were sent, results that were dealt with. It stays
        when the original goes on or is removed, until somebody deletes it. `LocalRuntime(state=..., savepoint=...)` and
        `RayRuntime(state=..., savepoint=...)` begin from it, under any name and in any place. Only with a state.
        """

    @abstractmethod
    def deactivate(self) -> None:
        """Take no more rows, from any program or spout, until `activate`: `send` waits; results and windows stay.

        What has been taken goes on to its results, and everything else can be called as before. Calls of `send` that
        are under way may still bring their rows. Harmless when repeated. It survives the failure of processes, and does
        not survive `stop`: what is launched takes rows.
        """

    @abstractmethod
    def activate(self) -> None:
        """Take rows again, after `deactivate`; calls that waited go on. Harmless when repeated."""

    def drain(self) -> None:
        """Take no more rows, from any program, and finish what is there: `results()` can be read to its end.

        Rows that have been taken still lead to results; rows that come later are refused with a `SourceEndedError`. It
        cannot be undone, and is harmless when repeated. With a state it survives. `stop()` afterwards loses no result
        that has been read; those that nobody has read go with it, unless there is a state.
        """
        self.finish()

    @abstractmethod
    def stop(self) -> None:
        """Stop all tasks and free what they hold; harmless when repeated. Raises what made a task fail, once."""

    async def results_async(
        self,
        sink: str | None = None,
        timeout: float | None = None,
        *,
        after: int | None = None,
        numbered: bool = False,
        take_over: bool = False,
    ) -> AsyncIterator[Any]:
        """As `results`, for `async for`: the event loop goes on while this waits for rows in a thread."""
        loop = asyncio.get_running_loop()
        waiting = ThreadPoolExecutor(1, thread_name_prefix="results")
        reading = partial(self.results, sink, timeout, after=after, take_over=take_over)
        opening: Future[Results[Any]] = waiting.submit(lambda: reading(numbered=True) if numbered else reading())
        try:
            rows = await asyncio.wrap_future(opening)
            while (item := await loop.run_in_executor(waiting, next, rows, None)) is not None:
                yield item
        finally:
            # The loop goes on at once, even if the thread still waits: for rows, which this ends, or to begin.
            opening.add_done_callback(_close)
            waiting.shutdown(wait=False)

    def logs(self, after: int = -1) -> tuple[LogLine, ...]:
        """Return what the topology's processes have logged, and on a cluster printed, after the line of this number.

        In this process, lines are kept from the first call on.
        """
        return ()

    def waiting_for(self) -> str:
        """Say for what rows wait before they can lead to results, where that is known; otherwise nothing."""
        return ""

    def event_time_reached(self) -> str:
        """Say up to which event time rows have passed, where that is known; otherwise nothing."""
        return ""

    def _progress_line(self, rate: Rate) -> str:
        """Rows, rate, event time and what is waited for, in one line; `rate` remembers the last count."""
        metrics, topology = self.metrics(), self.topology
        taken = {stream: sum(task.rows_in for task in metrics.of(stream)) for stream in topology.inputs}
        given = sum(task.rows_in for task in metrics.of(topology.main_sink or ""))
        reached = self.event_time_reached()
        parts = [
            *(f"{stream} {rows:,} rows" for stream, rows in taken.items()),
            f"{rate.at(sum(taken.values())):,.0f} rows/s",
            f"{given:,} results",
            f"event time {reached}" if reached else "",
            self.waiting_for(),
        ]
        return f"{self.name}: {', '.join(part for part in parts if part)}"

    def _explain_timeout(self) -> None:
        with suppress(InterlaceError):  # an explanation is not worth an error
            reason = self.waiting_for()
            if reason and reason != self._explained_timeout:
                self._explained_timeout = reason
                log.warning("%s: no results so far: %s", self.name, reason)

    def _repr_html_(self) -> str:
        try:
            status, metrics = self.status(), self.metrics()
        except InterlaceError as error:
            return f"<b>{escape(self.name)}</b>: {escape(str(error))}"
        waiting = self.waiting_for() if status.state is State.RUNNING else ""
        notes = [status.state.value, f"{len(status.workers)} processes" if len(status.workers) > 1 else "", waiting]
        shown = escape(", ".join(note for note in notes if note))
        failure = f"<pre>{escape(status.error)}</pre>" if status.error else ""
        return f"<b>{escape(self.name)}</b>: {shown}{failure}{metrics._repr_html_()}"

    def sink_schema(self, sink: str) -> pa.Schema | None:
        """Return the columns of the rows that reach a sink, where they are known before any has."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except Exception:
            if error is None:
                raise
            log.exception("while stopping after another error")


def _close(opening: Future[Results[Any]]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
