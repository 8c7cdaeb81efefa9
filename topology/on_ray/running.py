"""The handle of a topology on Ray: it starts the processes of the tasks, feeds, reads and watches them."""

from __future__ import annotations

import atexit
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as NotYet
from typing import Any

import pyarrow as pa
import ray

from topology.flight.auth import Authority, Grant, Right
from topology.flight.client import FlightClient
from topology.flight.port import LOOPBACK
from topology.flight.server import grants
from topology.graph.errors import StoppedError, TaskError
from topology.graph.graph import TaskName, Topology
from topology.handle.endpoint import Endpoint
from topology.handle.handle import log
from topology.handle.results_queue import ResultsQueue
from topology.handle.running import RunningTopology
from topology.handle.status import State, Status, WorkerStatus
from topology.on_ray.actor import Address, Failure, TaskOrder, actor_class
from topology.on_ray.answers import gather, reason
from topology.on_ray.background_calls import BackgroundCalls
from topology.on_ray.by_value import dumps
from topology.on_ray.cluster import membership, require_one_machine
from topology.tasks.metrics import Metrics

START_SECONDS = 120.0
"""How long no task's process may answer while they start; each answer begins a new wait."""

STOP_SECONDS = 5.0
BLAME_SECONDS = 3.0
"""How long to wait before blaming a task that lost its connection: the task that died may be found meanwhile."""
UNREAD_WARNING_SECONDS = 10.0
LOOK_UP_SECONDS = 0.2


class RayTopology(RunningTopology):
    """The handle of a topology whose tasks are Ray actors."""

    def __init__(
        self, topology: Topology, address: str | None, edge_bytes: int, spill_directory: str | None, plain_network: bool
    ) -> None:
        super().__init__(topology, topology.name)
        self._edge_bytes = edge_bytes
        self._error: TaskError | None = None
        self._error_reported = False
        self._stopped = False
        self._final_metrics: Metrics | None = None
        self._state = threading.RLock()
        self._failed = threading.Event()
        self._actors: dict[TaskName, Any] = {}
        self._addresses: dict[TaskName, Address] = {}
        self._calls: dict[str, BackgroundCalls] = {}
        self._clients: dict[str, FlightClient] = {}
        self._queues: dict[str, ResultsQueue] = {}
        self._authority = Authority()
        self._tokens = {
            (name, control): self._authority.issue(*grants(topology, name, control))
            for name in [*topology.inputs, *topology.sinks]
            for control in (False, True)
        }
        membership.join(address)
        try:
            require_one_machine(plain_network)
            self._start_actors(spill_directory, ray.util.get_node_ip_address() if plain_network else LOOPBACK)
        except BaseException:
            self._stopped = True
            self._end_actors()
            membership.leave()
            raise
        self._watcher = threading.Thread(target=self._watch, name=f"watching {topology.name}", daemon=True)
        self._watcher.start()
        atexit.register(self._stop_at_exit)

    def metrics(self) -> Metrics:
        if self._final_metrics is not None:
            return self._final_metrics
        return self._ask_metrics(START_SECONDS)

    def status(self) -> Status:
        state = State.FAILED if self._error is not None else State.STOPPED if self._stopped else State.RUNNING
        workers = tuple(
            WorkerStatus(f"{component}/{number}", address.node, 0, ((component, number),))
            for (component, number), address in self._addresses.items()
        )
        return Status(self.name, state, workers, "" if self._error is None else str(self._error))

    def endpoint(self, stream: str, control: bool = False) -> Endpoint:
        grants(self.topology, stream, control)  # raises if there is no such stream
        if self._stopped:
            raise StoppedError("the topology has been stopped")
        return Endpoint(self._addresses[stream, 0].location, self._tokens[stream, control])

    def pin(self, stream: str, schema: pa.Schema) -> None:
        self.topology.require_input(stream)
        self._call(stream, lambda client: client.pin(stream, schema))

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        self.topology.require_input(stream)
        self._call(stream, lambda client: client.commit(stream, source, attempt, rows))

    def stop(self) -> None:
        with self._state:
            was_running = not self._stopped
            self._stopped = True
        if was_running:
            atexit.unregister(self._stop_at_exit)
            if ray.is_initialized():
                try:
                    self._final_metrics = self._ask_metrics(STOP_SECONDS)
                except Exception:  # a task that is gone has no metrics
                    self._final_metrics = Metrics(())
            self._close_queues()
            self._end_actors()
            self._watcher.join(STOP_SECONDS)
            for calls in self._calls.values():
                calls.close(STOP_SECONDS)
            for client in self._clients.values():
                client.close()
            membership.leave()
        if self._error is not None and not self._error_reported:
            self._error_reported = True
            raise self._error

    def _open(self, stream: str, source: str) -> None:
        self._call(stream, lambda client: client.open(stream, source))

    def _send(self, stream: str, source: str, rows: pa.RecordBatch) -> None:
        self._call(stream, lambda client: client.send(stream, source, rows))

    def _send_all(self, stream: str, source: str, batches: list[pa.RecordBatch]) -> None:
        self._call(stream, lambda client: client.send(stream, source, batches))

    def _finish(self, stream: str, source: str | None) -> None:
        self._call(stream, lambda client: client.finish(stream, source))

    def _results(self, sink: str, timeout: float | None) -> Iterator[pa.RecordBatch]:
        with self._state:
            if sink not in self._queues:
                queue = ResultsQueue(self._edge_bytes)
                self._queues[sink] = queue
                if self._stopped or self._error is not None:
                    queue.close()
                else:
                    threading.Thread(target=self._pump, args=(sink, queue), name=f"reading {sink}", daemon=True).start()
            queue = self._queues[sink]
        while not queue.finished:
            rows = queue.next(timeout)
            if rows is not None:
                yield rows
            elif not queue.finished:
                self._raise_error()
                if queue.error is not None:
                    self._queues.pop(sink, None)  # the next call tries again
                    raise queue.error
                return

    def _pump(self, sink: str, queue: ResultsQueue) -> None:
        """Fetch the rows of a sink into this process, as its queue has room for them."""
        try:
            with FlightClient(self.endpoint(sink)) as client:
                for rows in client.results(sink):
                    queue.put(rows)
                queue.end()
        except StoppedError:
            self._failed.wait(BLAME_SECONDS + STOP_SECONDS)
            queue.close(self._error)
        except Exception as error:
            queue.close(error)

    def _call(self, stream: str, call: Callable[[FlightClient], Any]) -> None:
        """Call the input's process; Ctrl-C and the failure of a task interrupt the wait."""
        self._raise_error()
        with self._state:
            if self._stopped:
                raise StoppedError("the topology has been stopped")
            if stream not in self._calls:
                self._calls[stream] = BackgroundCalls(f"calls to {stream}")
                self._clients[stream] = FlightClient(self.endpoint(stream, control=True))
        client = self._clients[stream]
        future = self._calls[stream].submit(lambda: call(client))
        warn_at = time.monotonic() + UNREAD_WARNING_SECONDS
        while True:
            try:
                future.result(LOOK_UP_SECONDS)
                return
            except NotYet:
                self._raise_error()
                if self._stopped:
                    raise StoppedError("the topology has been stopped") from None
                if time.monotonic() > warn_at:
                    warn_at += UNREAD_WARNING_SECONDS
                    log.warning("a call to '%s' waits for room; read results() in another thread", stream)
            except StoppedError:
                if not self._stopped:
                    self._failed.wait(BLAME_SECONDS + STOP_SECONDS)
                self._raise_error()
                raise

    def _start_actors(self, spill_directory: str | None, host: str) -> None:
        """Start all processes, collect their addresses, and send each the addresses of the others."""
        channel_token = self._authority.issue(Grant(Right.CHANNEL))
        launch = f"interlace-{uuid.uuid4().hex[:12]}"
        make = ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0, max_concurrency=4)
        paths = [path for path in sys.path if path]
        for node in self.topology.nodes:
            for number in range(node.parallelism):
                order = TaskOrder(
                    self.topology, (node.name, number), 0, self._edge_bytes, spill_directory, host, self._authority,
                    channel_token,
                )  # fmt: skip
                name = f"{self.topology.name}/{node.name}[{number}]"
                actor = make(actor_class(name)).options(name=name, namespace=launch)
                self._actors[node.name, number] = actor.remote(paths, dumps(order))
        for task, answer in self._ask("address", START_SECONDS).items():
            if isinstance(answer, Failure):
                raise TaskError(*task, answer.text)
            self._addresses[task] = answer
        self._ask("start", START_SECONDS, self._addresses)

    def _ask(self, method: str, silence: float, *arguments: Any) -> dict[TaskName, Any]:
        """Call a method of every actor and return the answers; see `gather`."""
        return gather(
            {task: getattr(actor, method).remote(*arguments) for task, actor in self._actors.items()}, silence
        )

    def _ask_metrics(self, silence: float) -> Metrics:
        return Metrics(tuple(self._ask("metrics", silence).values()))

    def _watch(self) -> None:
        """Wait for the first task that fails, or for the end of all."""
        waiting = {actor.wait.remote(): task for task, actor in self._actors.items()}
        suspect: TaskError | None = None
        blame_at = float("inf")
        while waiting and not self._stopped:
            if not ray.is_initialized():  # any call to Ray would now start a new cluster
                self._fail(TaskError(*next(iter(waiting.values())), "ray.shutdown() was called before stop()"))
                return
            ready, _ = ray.wait(list(waiting), num_returns=1, timeout=LOOK_UP_SECONDS)
            for reference in ready:
                task = waiting.pop(reference)
                try:
                    failure = ray.get(reference)
                except ray.exceptions.RayError as error:
                    self._fail(TaskError(*task, reason(*task, error)))
                    return
                if failure is not None and not failure.lost:
                    self._fail(TaskError(*task, failure.text))
                    return
                if failure is not None and suspect is None:
                    suspect = TaskError(*task, failure.text)
                    blame_at = time.monotonic() + BLAME_SECONDS
            if suspect is not None and time.monotonic() > blame_at:
                self._fail(suspect)
                return

    def _fail(self, error: TaskError) -> None:
        """Keep the first error and close all queues, which wakes everyone who waits."""
        with self._state:
            if self._stopped:
                return
            self._error = self._error or error
        self._failed.set()
        self._close_queues()
        if ray.is_initialized():
            for actor in self._actors.values():
                actor.close.remote()

    def _close_queues(self) -> None:
        for queue in list(self._queues.values()):
            queue.close(self._error)

    def _end_actors(self) -> None:
        """Ask the actors to close, then kill their processes and wait until they have ended."""
        if not ray.is_initialized():
            return
        closing = [actor.close.remote() for actor in self._actors.values()]
        ray.wait(closing, num_returns=len(closing), timeout=STOP_SECONDS) if closing else None
        for actor in self._actors.values():
            ray.kill(actor)
        ended = [actor.wait.remote() for actor in self._actors.values()]
        if ended:
            ray.wait(ended, num_returns=len(ended), timeout=STOP_SECONDS)

    def _stop_at_exit(self) -> None:
        """Stop a topology that the program has not stopped before its end."""
        try:
            self.stop()
        except Exception:
            log.exception("topology '%s' had failed before the program ended", self.topology.name)

    def _raise_error(self) -> None:
        if self._error is not None:
            self._error_reported = True
            raise self._error
