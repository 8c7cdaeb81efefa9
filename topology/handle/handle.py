"""The interface that programs hold while something runs: send rows, read results, watch, stop."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeAlias

import pyarrow as pa

from topology.graph.graph import Topology
from topology.handle.endpoint import Endpoint
from topology.handle.status import Status
from topology.tasks.metrics import Metrics

log = logging.getLogger("interlace")

Rows: TypeAlias = "pa.RecordBatch | pa.Table"


class Handle(ABC):
    """A running topology, or something that runs as one. Leaving a `with` block stops it; nothing is left running."""

    topology: Topology
    """The graph that runs."""

    name: str
    """The name under which it runs."""

    @abstractmethod
    def send(self, stream: str, rows: Rows, source: str | None = None) -> None:
        """Send the next rows of a source (by default one source named after the stream).

        Waits for room: a slow reader of the results makes `send` wait. In this process the rows have been taken when it
        returns, and an `InputError` says that rows do not fit the stream and nothing has changed. A topology in other
        processes gets rows ahead of its answers. Then a refusal may be raised by a later call of `send`, `flush` or
        `finish`; its `rows_taken` says how many rows sent to the stream have been taken, and nothing behind them has.
        The first rows of a stream and of a source are always answered before `send` returns.
        """

    @abstractmethod
    def flush(self, timeout: float | None = None) -> None:
        """Wait until the topology has taken all rows that were sent; raises the `InputError` if it refused some.

        timeout: seconds after which to raise `TimeoutError`; the rows are still on their way then.
        """

    @abstractmethod
    def open(self, stream: str, *sources: str) -> None:
        """Announce physical sources before they send, so that none of their rows can come too late."""

    @abstractmethod
    def finish(self, stream: str | None = None, source: str | None = None) -> None:
        """Declare that no more rows will come: from one source, from one stream, or (without arguments) from any.

        `results()` comes to its end when all streams are finished and their results have been read.
        """

    @abstractmethod
    def results(self, sink: str | None = None, timeout: float | None = None) -> Iterator[pa.RecordBatch]:
        """Iterate over what reaches a sink, in order; ends when everything has been finished and read.

        timeout: stop iterating after this many seconds without rows; call again to go on.
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
    def pin(self, stream: str, schema: pa.Schema) -> None:
        """Fix the schema of a stream before its rows come; raises a `SchemaError` if it does not fit."""

    @abstractmethod
    def schema(self, stream: str) -> pa.Schema | None:
        """Return the schema of a stream's rows; None while no rows have come and nobody has pinned it."""

    @abstractmethod
    def stop(self) -> None:
        """Stop all tasks and free what they hold; harmless when repeated. Raises what made a task fail, once."""

    async def results_async(
        self, sink: str | None = None, timeout: float | None = None
    ) -> AsyncIterator[pa.RecordBatch]:
        """As `results`, for `async for`: the event loop goes on while this waits for rows in a thread."""
        rows = self.results(sink, timeout)
        loop = asyncio.get_running_loop()
        waiting = ThreadPoolExecutor(1, thread_name_prefix="results")
        try:
            while (batch := await loop.run_in_executor(waiting, next, rows, None)) is not None:
                yield batch
        finally:
            waiting.shutdown(wait=False)  # the loop goes on at once, even if the thread still waits for rows

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
