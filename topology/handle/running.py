"""The handle of a launched topology: send, read, watch, stop."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeAlias

import pyarrow as pa

from topology.graph.errors import InputError, OutOfOrderError, TopologyError
from topology.graph.event_time import check_event_time, event_times, first_backwards
from topology.graph.graph import Topology
from topology.tasks.metrics import Metrics

log = logging.getLogger("interlace")

Rows: TypeAlias = "pa.RecordBatch | pa.Table"


@dataclass(frozen=True)
class Endpoint:
    """Where other processes reach one stream over Arrow Flight, and the token that lets them in."""

    location: str
    token: str

    def __repr__(self) -> str:
        return f"Endpoint({self.location!r}, token=...)"


class RunningTopology(ABC):
    """What `launch` returns. Leaving a `with` block stops the topology; nothing is left running."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology

    def send(self, stream: str, rows: Rows, source: str | None = None) -> None:
        """Send the next rows of a source (by default one source named after the stream).

        Returns when the topology has taken the rows: a slow reader of the results makes `send` wait.
        Raises an `InputError`, and changes nothing, if the rows do not fit the stream.
        """
        described = self.topology.require_input(stream)
        in_order_of = None if described.disordered else described.event_time
        self._send_all(stream, source or stream, _batches(stream, rows, in_order_of))

    def open(self, stream: str, *sources: str) -> None:
        """Announce physical sources before they send, so that none of their rows can come too late."""
        self.topology.require_input(stream)
        for source in sources:
            self._open(stream, source)

    def finish(self, stream: str | None = None, source: str | None = None) -> None:
        """Say that no more rows will come: from one source, from one stream, or (without arguments) from anyone.

        `results()` comes to its end when all streams are finished and their results have been read.
        """
        if stream is None and source is not None:
            raise InputError(f"name the stream of source '{source}'")
        if stream is not None:
            self.topology.require_input(stream)
        for name in self.topology.inputs if stream is None else [stream]:
            self._finish(name, source)

    def results(self, sink: str | None = None, timeout: float | None = None) -> Iterator[pa.RecordBatch]:
        """Iterate over what reaches a sink, in order; ends when everything has been finished and read.

        timeout: stop iterating when nothing has come for so many seconds; call again to go on.
        """
        sinks = self.topology.sinks
        sink = self.topology.main_sink if sink is None else sink
        if sink is None or sink not in sinks:
            raise TopologyError(
                f"topology '{self.topology.name}': name the sink to read, one of: {', '.join(sinks) or 'none'}"
            )
        return self._results(sink, timeout)

    @abstractmethod
    def metrics(self) -> Metrics:
        """What each task has counted so far."""

    @abstractmethod
    def endpoint(self, stream: str, control: bool = False) -> Endpoint:
        """Where other processes send the rows of an input, or read those of a sink, over Arrow Flight.

        Its token allows to send and to stage rows of that one stream; with `control` also to commit and to finish it.
        """

    @abstractmethod
    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        """Make visible what other processes staged for a source; see `Ingest.commit`."""

    @abstractmethod
    def pin(self, stream: str, schema: pa.Schema) -> None:
        """Check the schema that a stream is going to have, before its rows come."""

    @abstractmethod
    def stop(self) -> None:
        """Stop all tasks and free what they hold; harmless when repeated. Raises what made a task fail, once."""

    @abstractmethod
    def _open(self, stream: str, source: str) -> None: ...

    @abstractmethod
    def _send(self, stream: str, source: str, rows: pa.RecordBatch) -> None: ...

    def _send_all(self, stream: str, source: str, batches: list[pa.RecordBatch]) -> None:
        """Send batches that belong together; a runtime that can send the next before the last was taken overrides."""
        for batch in batches:
            self._send(stream, source, batch)

    @abstractmethod
    def _finish(self, stream: str, source: str | None) -> None: ...

    @abstractmethod
    def _results(self, sink: str, timeout: float | None) -> Iterator[pa.RecordBatch]: ...

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


class Runtime(ABC):
    """Where a topology runs."""

    @abstractmethod
    def launch(self, topology: Topology) -> RunningTopology:
        """Start all tasks and return the handle."""


def _batches(stream: str, rows: Rows, event_time: str | None) -> list[pa.RecordBatch]:
    """Cut a table into its batches; the order of all is checked first, for no part may go in if another fails."""
    if isinstance(rows, pa.RecordBatch):
        return [rows]
    if isinstance(rows, pa.Table):
        if event_time is not None and rows.schema.names.count(event_time) == 1:
            check_event_time(stream, rows.schema, event_time)
            found = first_backwards(*event_times(rows.column(event_time).combine_chunks()))
            if found is not None:
                row, before, after = found
                raise OutOfOrderError(
                    f"stream '{stream}': '{event_time}' goes backwards at row {row} of the table ({before} is followed "
                    f"by {after}): sort it by '{event_time}', declare how far its rows may be out of order "
                    f"(out_of_order= of a join), or send them as separate sources"
                )
        return rows.to_batches() or [pa.RecordBatch.from_pylist([], schema=rows.schema)]
    raise InputError(f"stream '{stream}' takes a pyarrow RecordBatch or Table, not {type(rows).__name__}")
