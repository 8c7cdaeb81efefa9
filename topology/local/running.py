"""The handle of a topology in this process.

With a state, the topology may begin another *life* (`rebalance`): its tasks end, others are made from another
description, and go on from the journal. The queues of the sinks stay, so readers notice nothing; calls that were under
way at the entry are made again.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import pyarrow as pa

from topology.entry.entry_of_lives import EntryOfLives
from topology.entry.explained_stop import ExplainedStop
from topology.entry.ingest import Ingest
from topology.flight.server import TopologyServer
from topology.graph.errors import StoppedError, TaskError, TopologyError
from topology.graph.graph import TaskName, Topology
from topology.handle.endpoint import Endpoint
from topology.handle.handle import log
from topology.handle.log_lines import CollectedLines, LogLine, LogLines, TaskNames
from topology.handle.results import ExplainedReading, Reading
from topology.handle.results_queue import ResultsQueue
from topology.handle.running import MakeHandle, RunningTopology
from topology.handle.status import Event, State, Status, WorkerStatus
from topology.placement.wishes import Wish
from topology.process.hosted_task import GroupSettings
from topology.process.state import StatePlace, with_state
from topology.process.task_group import TaskGroup
from topology.tasks.metrics import Metrics

REBALANCING = "it is being rebalanced"


class LocalTopology(RunningTopology):
    """The handle of a topology in this process.

    place: where its state is kept; None: nowhere.
    """

    def __init__(
        self,
        topology: Topology,
        name: str,
        settings: GroupSettings,
        place: StatePlace | None = None,
    ) -> None:
        super().__init__(topology, name)
        self._settings = settings
        self._place = place
        self._error: TaskError | None = None
        self._error_reported = False
        self._explained = ExplainedStop(self._reported)
        self._stopped = False
        self._state = threading.Lock()
        self._succession = threading.Lock()  # held while a life ends and the next begins
        self._life = 0
        self._active = True
        self._events = [Event(time.time(), State.RUNNING)]
        self._log_lines = LogLines(name)
        self._collected: CollectedLines | None = None
        self._task_names = TaskNames(name, self._task_of)
        self._server: TopologyServer | None = None
        self._entry = EntryOfLives(lambda: self._group.ingest, self._outlived)
        self._group = self._new_group(topology)
        log.addFilter(self._task_names)
        self._group.start()

    def fail(self, error: TaskError) -> None:
        """Keep the first error and close all queues, which wakes everyone who waits."""
        with self._state:
            if self._stopped:
                return
            if self._error is None:
                self._error = error
                place = (error.component, error.task)
                self._events.append(Event(time.time(), State.FAILED, error.traceback_text, place))
        self._group.close_queues(self._error)

    def metrics(self) -> Metrics:
        return Metrics(self._group.metrics())

    def status(self) -> Status:
        state, why = State.RUNNING, ""
        if self._error is not None:
            state, why = State.FAILED, str(self._error)
        elif self._stopped:
            state = State.STOPPED
        elif self._succession.locked():
            state, why = State.RECOVERING, REBALANCING
        vitals = self._group.vitals()
        worker = WorkerStatus(
            "this process", socket.gethostname(), os.getpid(), self.topology.task_names, vitals=vitals
        )
        trouble = vitals.trouble if state is State.RUNNING else ""
        return Status(
            self.name, state, (worker,), why, events=tuple(self._events), trouble=trouble, active=self._active
        )

    def logs(self, after: int = -1) -> tuple[LogLine, ...]:
        with self._state:
            if self._collected is None and not self._stopped:
                self._collected = CollectedLines(self._task_of)
                log.addHandler(self._collected)
        if self._collected is not None:
            self._log_lines.add(self._collected.fetch())
        return self._log_lines.after(after)

    def endpoint(self, stream: str, control: bool = False) -> Endpoint:
        with self._state:
            if self._stopped:
                raise StoppedError("the topology has been stopped")
            if self._server is None:
                self._server = TopologyServer(
                    self.topology,
                    self._entry,
                    self._group.results,
                    failure=lambda: self._error,
                    quotas=self._settings.quotas,
                    settled=self._settle,
                )
        return self._server.endpoint(stream, control)

    def change(self, topology: Topology, placement: Wish | None = None, make_handle: MakeHandle | None = None) -> None:
        if placement is not None:
            raise TopologyError(
                "placement= needs a cluster: here all tasks are in this process; use RayRuntime(), or leave it out"
            )
        topology = with_state(topology) if self._is_durable else topology
        self._check_change(topology)
        with self._succession:
            self._raise_error()
            self._require_running()
            self._events.append(Event(time.time(), State.RECOVERING, REBALANCING))
            before = self._group
            before.close_edges()
            busy = before.join()
            try:
                self._raise_error()
                if busy:
                    raise TopologyError(f"{', '.join(busy)} did not end")
                self._group = self._new_group(topology, before.results)
                self._topology = topology
                self._group.start()
                self._events.append(Event(time.time(), State.RUNNING))
            except BaseException as error:
                first = topology.nodes[0].name
                self.fail(TaskError(first, 0, f"it could not go on with other tasks: {error}; launch it again"))
                raise

    def _set_active(self, active: bool) -> None:
        with self._succession:
            self._raise_error()
            self._require_running()
            self._active = active
            self._group.set_active(active)

    def savepoint(self) -> str:
        self._check_savepoint()
        place = self._place
        assert place is not None, "a state is kept"
        while True:
            self._raise_error()
            group = self._group
            try:
                return place.save(group.journal)
            except StoppedError:
                if not self._outlived(group.ingest):
                    raise

    def pin(self, stream: str, schema: pa.Schema) -> None:
        self.topology.require_input(stream)
        self._entry.pin(stream, schema)

    def schema(self, stream: str) -> pa.Schema | None:
        self.topology.require_input(stream)
        return self._entry.schema(stream)

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        self.topology.require_input(stream)
        with self._explained:
            self._entry.commit(stream, source, attempt, rows)

    def discard(self, stream: str, attempts: str) -> None:
        self.topology.require_input(stream)
        with self._explained:
            self._entry.discard(stream, attempts)

    def stop(self) -> None:
        with self._succession, self._state:
            was_running = not self._stopped
            self._stopped = True
            server = self._server
            if was_running and self._error is None:
                self._events.append(Event(time.time(), State.STOPPED))
            log.removeFilter(self._task_names)
            if self._collected is not None:
                log.removeHandler(self._collected)
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
            self._entry.flush(timeout)  # rows have been taken when `send` returns

    def _open(self, stream: str, source: str, behind: str | None) -> None:
        with self._explained:
            self._entry.open(stream, source, behind)

    def next_offset(self, stream: str, source: str | None = None) -> int:
        self.topology.require_input(stream)
        with self._explained:
            return self._entry.durable_offset(stream, source or stream)

    def _send_all(self, stream: str, source: str, batches: list[pa.RecordBatch], offset: int | None) -> int:
        following = 0
        for batch in batches:
            with self._explained:
                following = self._entry.send(stream, source, batch, offset)
            if offset is not None:
                offset += batch.num_rows
        return following

    def _finish(self, stream: str, source: str | None) -> None:
        with self._explained:
            self._entry.finish(stream, source)

    def _read(self, sink: str, after: int | None, take_over: bool) -> Reading:
        with self._reported_to_reader():
            self._raise_error()
            return ExplainedReading(self._group.results[sink].read(after, take_over), self._reported_to_reader)

    def _acknowledge(self, sink: str, number: int) -> None:
        self._group.results[sink].acknowledge(number)
        self._settle()

    @property
    def _is_durable(self) -> bool:
        return self._place is not None

    def _settle(self) -> None:
        """Wait until what has been acknowledged is so after a failure, too: in the life in which it is recorded."""
        while True:
            group = self._group
            try:
                group.wait_for_acknowledgements()
            except StoppedError:
                if not self._outlived(group.ingest):
                    raise
                continue
            if not self._is_durable or not self._outlived(group.ingest):
                return

    def _new_group(self, topology: Topology, results: Mapping[str, ResultsQueue] | None = None) -> TaskGroup:
        """Make the tasks of the next life, which goes on from the journal."""
        place, directory = self._place, self._settings.spill_directory
        opened = None if place is None else place.open(topology, directory)
        snapshots = None if place is None else place.open_snapshots(topology)
        self._life += 1
        try:
            failed = partial(self._failed, self._life)
            group = TaskGroup(topology, topology.task_names, self._settings, failed, opened, results, snapshots)
            group.connect()
            group.set_active(self._active)
        except BaseException:
            if snapshots is not None:
                snapshots.close()
            if opened is not None:
                opened.journal.close()
            raise
        return group

    def _failed(self, life: int, error: TaskError) -> None:
        if life == self._life:
            self.fail(error)

    def _outlived(self, entry: Ingest) -> bool:
        """Whether another life has begun since the one of this entry; waits for one that begins just now."""
        with self._succession:
            return self._group.ingest is not entry

    def _task_of(self, thread: int) -> TaskName | None:
        return self._group.task_of(thread)

    def _require_running(self) -> None:
        if self._stopped:
            raise StoppedError("the topology has been stopped")

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
