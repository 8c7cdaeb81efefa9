"""The embedded runtime: a few threads in this process drive all tasks; no daemon, no port, started in milliseconds."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from topology.checks.quotas import Quotas
from topology.entry.ingest import ExplainedStop
from topology.flight.server import TopologyServer
from topology.graph.errors import StoppedError, TaskError, TopologyError
from topology.graph.graph import Topology
from topology.handle.endpoint import Endpoint
from topology.handle.results import ExplainedReading, Reading
from topology.handle.running import MakeHandle, RunningTopology, Runtime
from topology.handle.status import State, Status, WorkerStatus
from topology.journal.opening import Opened
from topology.process.state import check_state, open_state
from topology.process.task_group import GroupSettings, TaskGroup
from topology.tasks.inbox import DEFAULT_CAPACITY
from topology.tasks.metrics import Metrics


@dataclass(frozen=True)
class LocalRuntime(Runtime):
    """Runs a topology in this process.

    workers:         threads that drive the tasks; None: one more than there are cores, as one often waits for the GIL.
    edge_bytes:      the bytes that may wait on each edge before its sender has to wait.
    spill_directory: where rows that wait for slower sources are spilled; None: the system's temporary directory.
    quotas:          how much clients in other processes may use; None: the defaults of `Quotas`.
    state:           a directory or a URI of `pyarrow.fs` (s3://bucket/prefix) where everything is kept that must
                     survive, below the name of the topology; None: a topology ends with its process. Launched again
                     with the same state, a topology goes on where it was.
    """

    workers: int | None = None
    edge_bytes: int = DEFAULT_CAPACITY
    spill_directory: str | None = None
    quotas: Quotas | None = None
    state: str | Path | None = None

    @property
    def is_durable(self) -> bool:
        return self.state is not None

    def launch(
        self,
        topology: Topology,
        *,
        name: str | None = None,
        detached: bool = False,
        replace: bool = False,
        make_handle: MakeHandle | None = None,
    ) -> RunningTopology:
        """Build all tasks and start the threads.

        detached, replace: refused. A topology in this process ends with it, and other processes do not see its name.
        """
        for option, given in (("detached", detached), ("replace", replace)):
            if given:
                raise TopologyError(
                    f"{option}=True needs a cluster: a topology in this process ends with it, and no other program "
                    f"knows its name; use RayRuntime()"
                )
        name = name or topology.name
        opened = None
        if self.state is not None:
            check_state(topology)
            opened = open_state(self.state, name, topology, self.spill_directory)
        settings = GroupSettings(self.edge_bytes, self.spill_directory, self.workers, self.quotas)
        try:
            return LocalTopology(topology, name, settings, opened)
        except BaseException:
            if opened is not None:
                opened.journal.close()
            raise


class LocalTopology(RunningTopology):
    """The handle of a topology in this process."""

    def __init__(self, topology: Topology, name: str, settings: GroupSettings, opened: Opened | None = None) -> None:
        super().__init__(topology, name)
        self._quotas = settings.quotas
        self._error: TaskError | None = None
        self._error_reported = False
        self._explained = ExplainedStop(self._reported)
        self._stopped = False
        self._state = threading.Lock()
        self._server: TopologyServer | None = None
        self._group = TaskGroup(topology, topology.task_names, settings, self.fail, opened)
        self._group.connect()
        self._group.start()

    def fail(self, error: TaskError) -> None:
        """Keep the first error and close all queues, which wakes everyone who waits."""
        with self._state:
            if self._stopped:
                return
            self._error = self._error or error
        self._group.close_queues(self._error)

    def metrics(self) -> Metrics:
        return Metrics(self._group.metrics())

    def status(self) -> Status:
        state = State.FAILED if self._error is not None else State.STOPPED if self._stopped else State.RUNNING
        worker = WorkerStatus("this process", socket.gethostname(), os.getpid(), self.topology.task_names)
        return Status(self.name, state, (worker,), "" if self._error is None else str(self._error))

    def endpoint(self, stream: str, control: bool = False) -> Endpoint:
        with self._state:
            if self._stopped:
                raise StoppedError("the topology has been stopped")
            if self._server is None:
                self._server = TopologyServer(
                    self.topology,
                    self._group.ingest,
                    self._group.results,
                    failure=lambda: self._error,
                    quotas=self._quotas,
                    settled=self._group.wait_for_acknowledgements,
                )
        return self._server.endpoint(stream, control)

    def pin(self, stream: str, schema: pa.Schema) -> None:
        self.topology.require_input(stream)
        self._group.ingest.pin(stream, schema)

    def schema(self, stream: str) -> pa.Schema | None:
        self.topology.require_input(stream)
        return self._group.ingest.schema(stream)

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        self.topology.require_input(stream)
        with self._explained:
            self._group.ingest.commit(stream, source, attempt, rows)

    def stop(self) -> None:
        with self._state:
            was_running = not self._stopped
            self._stopped = True
            server = self._server
        if was_running:
            self._group.close_queues(self._error)
            if server is not None:
                server.close()
            self._group.join()
        if self._error is not None and not self._error_reported:
            self._error_reported = True
            raise self._error

    def flush(self, timeout: float | None = None) -> None:
        self._raise_error()
        with self._explained:
            self._group.ingest.flush(timeout)  # rows have been taken when `send` returns

    def _open(self, stream: str, source: str) -> None:
        with self._explained:
            self._group.ingest.open(stream, source)
            self._group.ingest.flush()

    def next_offset(self, stream: str, source: str | None = None) -> int:
        self.topology.require_input(stream)
        with self._explained:
            return self._group.ingest.durable_offset(stream, source or stream)

    def _send_all(self, stream: str, source: str, batches: list[pa.RecordBatch], offset: int | None) -> int:
        following = 0
        for batch in batches:
            with self._explained:
                following = self._group.ingest.send(stream, source, batch, offset)
            if offset is not None:
                offset += batch.num_rows
        return following

    def _finish(self, stream: str, source: str | None) -> None:
        with self._explained:
            self._group.ingest.finish(stream, source)

    def _read(self, sink: str, after: int | None, take_over: bool) -> Reading:
        with self._reported_to_reader():
            self._raise_error()
            return ExplainedReading(self._group.results[sink].read(after, take_over), self._reported_to_reader)

    def _acknowledge(self, sink: str, number: int) -> None:
        self._group.results[sink].acknowledge(number)
        self._group.wait_for_acknowledgements()

    @contextmanager
    def _reported_to_reader(self) -> Iterator[None]:
        try:
            yield
        except (StoppedError, TaskError) as error:
            raise self._reported() or error from None

    def _raise_error(self) -> None:
        if (error := self._reported()) is not None:
            raise error

    def _reported(self) -> TaskError | None:
        """The error that ended the topology, which the program now learns of."""
        self._error_reported |= self._error is not None
        return self._error
