"""The handle of a topology on Ray: a client of its controller, and of its inputs and sinks over Flight."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any

import pyarrow as pa
import ray

from topology.flight.background_calls import BackgroundCalls
from topology.flight.client import FlightClient
from topology.flight.resuming import Lives, ResumingClient
from topology.flight.server import grants
from topology.flight.sink_readers import NothingMore, SinkReaders
from topology.graph.errors import ConnectionLostError, InterlaceError, StoppedError, TaskError, TopologyError
from topology.graph.graph import Topology
from topology.handle.endpoint import Endpoint
from topology.handle.handle import log
from topology.handle.log_lines import LogLine
from topology.handle.results import Reading
from topology.handle.running import MakeHandle, RunningTopology
from topology.handle.status import State, Status
from topology.on_ray.by_value import dumps, loads
from topology.on_ray.charter import Description, Report
from topology.on_ray.cluster import membership
from topology.on_ray.launching import ANSWER_SECONDS, launch_error, lay_out
from topology.on_ray.lease import RENEWAL_SECONDS, Lease
from topology.on_ray.nodes import cluster_nodes
from topology.on_ray.workforce import START_SECONDS
from topology.placement.fit import missing
from topology.placement.wishes import Wish
from topology.process.state import with_state
from topology.tasks.metrics import Metrics

STOP_SECONDS = 5.0
UNREAD_WARNING_SECONDS = 10.0
LOOK_UP_SECONDS = 0.2
AT_EXIT_SECONDS = 30.0
"""How long a program that ends waits for the rows that it sent to a detached topology."""


class RayTopology(RunningTopology):
    """A topology on Ray. The cluster must have been joined; `stop` and `leave` give the membership back.

    owner: the name under which this program renews the topology's lease; None: it only follows.
    """

    def __init__(self, topology: Topology, description: Description, controller: Any, owner: str | None) -> None:
        super().__init__(topology, description.name)
        self._description = description
        self._controller = controller
        self._owner = owner
        self._error: Exception | None = None
        self._error_reported = False
        self._left = False
        self._active = True
        self._blame_seconds = description.leases.blame + 2 * STOP_SECONDS  # by then the controller has said who failed
        self._final_status: Status | None = None
        self._final_metrics: Metrics | None = None
        self._state = threading.RLock()
        self._failed = threading.Event()
        self._calls: dict[str, BackgroundCalls] = {}
        self._clients: dict[str, FlightClient | ResumingClient] = {}
        self._sources: set[tuple[str, str]] = set()
        self._lives = Lives(self.name, description.incarnation, self._check) if description.durable else None
        self._readers = SinkReaders(self._sink_endpoint, self._explained, self._lives)
        self._follower = threading.Thread(target=self._follow, name=f"following {self.name}", daemon=True)
        self._follower.start()
        atexit.register(self._leave_at_exit)

    def metrics(self) -> Metrics:
        if self._final_metrics is not None:
            return self._final_metrics
        return Metrics(self._ask("metrics"))

    def status(self) -> Status:
        if self._final_status is not None:
            return self._final_status
        status: Status = self._ask("status")
        return status

    def logs(self, after: int = -1) -> tuple[LogLine, ...]:
        lines: tuple[LogLine, ...] = () if self._final_status is not None else self._ask("logs", after)
        return lines

    def endpoint(self, stream: str, control: bool = False) -> Endpoint:
        grants(self.topology, stream, control)  # raises if there is no such stream
        self._require_here()
        endpoints = self._description.endpoints
        if (stream, control) not in endpoints:  # its worker is being started
            raise ConnectionLostError(f"topology '{self.name}' is recovering, and '{stream}' is not there yet")
        return endpoints[stream, control]

    def change(self, topology: Topology, placement: Wish | None = None, make_handle: MakeHandle | None = None) -> None:
        topology = with_state(topology) if self._is_durable else topology
        self._check_change(topology)
        self._check()
        before = self._description.layout
        settings, wish = loads(before.recipe)
        packed = before.make_handle if make_handle is None else dumps(make_handle)
        nodes = cluster_nodes()
        layout = lay_out(topology, nodes, placement or wish, settings, packed, durable=True)
        if lacking := missing(layout.placement, nodes):
            raise TopologyError(f"topology '{self.name}' cannot be rebalanced: the cluster has no room: {lacking}")
        refusal = self._wait_for(self._controller.rebalance.remote(dumps(layout)))
        if refusal:
            raise TopologyError(f"topology '{self.name}' could not be rebalanced, and goes on as it was: {refusal}")
        self._topology = topology

    def _set_active(self, active: bool) -> None:
        self._check()
        self._ask("set_active", active)
        self._active = active

    def savepoint(self) -> str:
        self._check_savepoint()
        self._check()
        return self._wait_for(self._controller.savepoint.remote())

    def pin(self, stream: str, schema: pa.Schema) -> None:
        self.topology.require_input(stream)
        self._call(stream, lambda client: client.pin(stream, schema))

    def schema(self, stream: str) -> pa.Schema | None:
        self.topology.require_input(stream)
        known: pa.Schema | None = self._call(stream, lambda client: client.schema(stream))
        return known

    def commit(self, stream: str, source: str, attempt: str, rows: int) -> None:
        self.topology.require_input(stream)
        self._call(stream, lambda client: client.commit(stream, source, attempt, rows))

    def discard(self, stream: str, attempts: str) -> None:
        self.topology.require_input(stream)
        self._call(stream, lambda client: client.discard(stream, attempts))

    def stop(self) -> None:
        """Stop the topology, for everyone who uses it."""
        self._end(self._stop_topology)
        if self._error is not None and not self._error_reported:
            self._error_reported = True
            raise self._error

    def leave(self, timeout: float | None = None) -> None:
        """Let go of the handle, once the rows that it sent have been taken; see `flush`.

        A detached topology goes on, any other ends with the program that launched it.
        """
        try:
            if not self._left and self._error is None:
                self._readers.close()
                self.flush(timeout)
        finally:
            self._end(lambda: None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._owner is not None:
            super().__exit__(kind, error, traceback)
        elif error is None:
            self.leave()
        else:
            self._end(lambda: None)

    def _end(self, stop: Callable[[], None]) -> None:
        with self._state:
            if self._left:
                return
            self._left = True
        atexit.unregister(self._leave_at_exit)
        if ray.is_initialized():
            stop()
        self._readers.abandon(self._error or StoppedError("the topology was stopped before all results had been read"))
        for client in self._clients.values():
            client.abandon(StoppedError("the topology has been stopped"))
        self._failed.set()  # nobody waits for a reason any more
        self._follower.join(STOP_SECONDS)
        for calls in self._calls.values():
            calls.close(STOP_SECONDS)
        membership.leave()

    def _stop_topology(self) -> None:
        """Stop all workers; a controller that does not answer is killed, and the workers end by themselves."""
        self._final_metrics = Metrics(())
        try:
            report: Report = self._ask("follow", self._owner, -1, 0.0)
            if report.state is State.FAILED and self._error is None:  # the follower has not heard of it yet
                self._error = launch_error(report)
            self._final_metrics = Metrics(ray.get(self._controller.stop.remote(), timeout=4 * STOP_SECONDS))
        except (ray.exceptions.RayError, StoppedError) as error:
            log.warning("the controller of '%s' does not answer (%s); its workers end by themselves", self.name, error)
        state = State.STOPPED if self._error is None else State.FAILED
        self._final_status = Status(self.name, state, (), "" if self._error is None else str(self._error))
        ray.kill(self._controller)

    def _ask(self, method: str, *arguments: Any) -> Any:
        """Call the controller; an answer that does not come is an error that says so."""
        if not ray.is_initialized():
            raise StoppedError("ray.shutdown() was called before stop()")
        limit = Lease(ANSWER_SECONDS)
        while True:
            try:
                return ray.get(getattr(self._controller, method).remote(*arguments), timeout=ANSWER_SECONDS)
            except ray.exceptions.GetTimeoutError:
                raise ConnectionLostError(f"the controller of '{self.name}' does not answer") from None
            except ray.exceptions.RayActorError as error:
                self._raise_error()
                gone = self._lives is None or not isinstance(error, ray.exceptions.ActorUnavailableError)
                if gone or limit.lapsed:
                    raise StoppedError(f"the topology '{self.name}' has been stopped") from None
                time.sleep(LOOK_UP_SECONDS)  # Ray starts it again

    @property
    def _is_durable(self) -> bool:
        return self._lives is not None

    def _wait_for(self, asked: Any) -> str:
        """The controller's answer to a call that may take long."""
        while True:
            try:
                answer: str = ray.get(asked, timeout=LOOK_UP_SECONDS)
                return answer
            except ray.exceptions.GetTimeoutError:
                self._check()
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, InterlaceError):
                    raise error.cause from None
                raise ConnectionLostError(f"a process of '{self.name}' failed meanwhile: {error.cause}") from error
            except ray.exceptions.RayError as error:
                raise ConnectionLostError(f"the controller of '{self.name}' died meanwhile: see status()") from error

    def _open(self, stream: str, source: str, behind: str | None) -> None:
        self._call(stream, lambda client: client.open(stream, source, behind=behind))

    def next_offset(self, stream: str, source: str | None = None) -> int:
        self.topology.require_input(stream)
        self.flush()
        offset: int = self._call(stream, lambda client: client.next_offset(stream, source or stream))
        return offset

    def _send_all(self, stream: str, source: str, batches: list[pa.RecordBatch], offset: int | None) -> int:
        """Send ahead of the answers; but the first rows of a source are taken after all that was sent before them.

        So whether rows of a source that nobody announced come too late depends on the order of the calls alone.
        """
        client, is_new = self._client(stream), (stream, source) not in self._sources
        if is_new:
            self.flush()
        with self._explained():
            client.send(stream, source, batches, offset)
            if is_new:
                client.flush()
                self._sources.add((stream, source))
            return client.sent_offset(stream, source)

    def flush(self, timeout: float | None = None) -> None:
        self._raise_error()
        limit = None if timeout is None else time.monotonic() + timeout
        with self._explained():
            for client in list(self._clients.values()):
                client.flush(None if limit is None else max(0.0, limit - time.monotonic()))

    def _finish(self, stream: str, source: str | None) -> None:
        self._call(stream, lambda client: client.finish(stream, source))

    def _read(self, sink: str, after: int | None, take_over: bool) -> Reading:
        if self._left and self._error is None and self._readers.has_ended(sink):
            return NothingMore()
        return self._readers.read(sink, after, take_over)

    def _acknowledge(self, sink: str, number: int) -> None:
        self._readers.acknowledge(sink, number)

    def _sink_endpoint(self, sink: str) -> Endpoint:
        self._raise_error()
        return self.endpoint(sink)

    def _call(self, stream: str, call: Callable[[FlightClient | ResumingClient], Any]) -> Any:
        """Call the input's process; Ctrl-C and the failure of a task interrupt the wait."""
        client = self._client(stream)
        future = self._calls[stream].submit(lambda: call(client))
        waiting = self._waiting(stream)
        with self._explained():
            while True:
                try:
                    return future.result(LOOK_UP_SECONDS)
                except NotYet:
                    waiting()

    def _client(self, stream: str) -> FlightClient | ResumingClient:
        self._raise_error()
        with self._state:
            self._require_here()
            if stream not in self._clients:
                connect = partial(self._connect, stream)
                self._clients[stream] = (
                    connect() if self._lives is None else ResumingClient(stream, connect, self._lives)
                )
                self._calls[stream] = BackgroundCalls(f"calls to {stream}")
            return self._clients[stream]

    def _connect(self, stream: str) -> FlightClient:
        return FlightClient(self.endpoint(stream, control=True), self._waiting(stream))

    def _check(self) -> None:
        """Raise why there is nothing to wait for."""
        self._raise_error()
        self._require_here()

    def _waiting(self, stream: str) -> Callable[[], None]:
        """What to do now and then while a call waits: end it if the topology has ended, and warn."""
        warn_at = time.monotonic() + UNREAD_WARNING_SECONDS

        def look_up() -> None:
            nonlocal warn_at
            self._check()
            if time.monotonic() > warn_at:
                warn_at = time.monotonic() + UNREAD_WARNING_SECONDS
                if self._active:
                    log.warning("a call to '%s' waits for room; read results() in another thread", stream)
                else:
                    log.warning("a call to '%s' waits: the topology is deactivated; activate() lets it go on", stream)

        return look_up

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Replace the news that the topology has stopped by the reason."""
        try:
            yield
        except TaskError:
            self._error_reported = True
            raise
        except StoppedError:
            if not self._left:
                self._failed.wait(self._blame_seconds)
            self._raise_error()
            raise

    def _follow(self) -> None:
        """Renew the lease and learn of a failure, until this handle or the topology ends."""
        report, silence = Report(-1, State.RUNNING), self._description.leases.worker
        unavailable = Lease(START_SECONDS)
        while not self._left and report.state in (State.RUNNING, State.RECOVERING):
            if not ray.is_initialized():  # any call to Ray would now start a new cluster
                self._fail(StoppedError("ray.shutdown() was called before stop()"))
                return
            call = self._controller.follow.remote(self._owner, report.version, RENEWAL_SECONDS)
            try:
                report = self._answer(call, silence) or report
                self._active = report.active
                self._note_life(report, silence)
                unavailable.renew()
            except ray.exceptions.GetTimeoutError:
                text = f"the controller of '{self.name}' has not answered for {silence:.0f} seconds"
                self._fail(ConnectionLostError(text))
                return
            except ray.exceptions.ActorUnavailableError as error:
                if self._lives is None or unavailable.lapsed:
                    self._fail(ConnectionLostError(f"the controller of '{self.name}' has died: {error}"))
                    return
                self._lives.ended()  # Ray starts it again
                time.sleep(LOOK_UP_SECONDS)
            except ray.exceptions.RayError as error:
                self._fail(ConnectionLostError(f"the controller of '{self.name}' has died: {error}"))
                return
        if report.state is State.FAILED:
            self._fail(launch_error(report))
        elif report.state is State.STOPPED:
            self._fail(StoppedError(f"another program has stopped the topology '{self.name}'"))

    def _note_life(self, report: Report, silence: float) -> None:
        """Learn the endpoints of a new life, and tell those who wait for it."""
        if self._lives is None:
            return
        if report.state is State.RECOVERING:
            self._lives.ended()
        elif report.state is State.RUNNING and report.incarnation != self._description.incarnation:
            before = self._description.layout.topology
            self._description = self._answer(self._controller.describe.remote(), silence) or self._description
            if self._description.layout.topology != before:  # somebody has rebalanced it
                self._topology = loads(self._description.layout.topology)
            self._lives.began(self._description.incarnation)

    def _answer(self, call: Any, seconds: float) -> Any:
        """The controller's answer; None if this handle ends meanwhile, as no thread may be inside Ray then."""
        limit = time.monotonic() + seconds
        while not self._left:
            try:
                return ray.get(call, timeout=LOOK_UP_SECONDS)
            except ray.exceptions.GetTimeoutError:
                if time.monotonic() > limit:
                    raise
        return None

    def _fail(self, error: Exception) -> None:
        """Keep the first error and close all queues, which wakes everyone who waits."""
        with self._state:
            if self._left:
                return
            self._error = self._error or error
        self._failed.set()
        self._readers.abandon(self._error)

    def _leave_at_exit(self) -> None:
        """End a handle that the program has not ended; what it launched ends too, unless it is detached."""
        try:
            if self._owner is None:
                self.leave(AT_EXIT_SECONDS)
            else:
                self.stop()
        except TimeoutError as error:
            log.warning("topology '%s': the program ended before all its rows were taken (%s)", self.name, error)
        except Exception:
            log.exception("topology '%s' had failed before the program ended", self.name)

    def _require_here(self) -> None:
        if self._left:
            raise StoppedError("the topology has been stopped")

    def _raise_error(self) -> None:
        if self._error is not None:
            self._error_reported = True
            raise self._error
