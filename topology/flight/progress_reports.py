"""How other workers tell the one with the journal how far results are acknowledged, and which snapshots are saved.

Only the latest progress of each sink matters, and the latest snapshot of each task, so reports that have not been sent
are replaced by newer ones. One thread sends them, and tries again while the other worker cannot be reached: if
that has died, this worker is told to start anew, which ends the thread.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from functools import partial

from topology.flight.client import FlightClient
from topology.flight.client_port import Call, ClientPort
from topology.flight.operations import Path, named_parts
from topology.graph.errors import InputError, InterlaceError, StaleStreamError, StoppedError
from topology.graph.graph import TaskName
from topology.graph.messages import Barrier
from topology.handle.endpoint import Endpoint
from topology.handle.results_queue import Progress
from topology.security.tokens import Right

RETRY_SECONDS = 0.5

log = logging.getLogger("interlace")

_WHOLE = re.compile(r"-?[0-9]{1,18}")

Record = Callable[[str, Progress], None]
"""Records the progress of a sink, and waits until that is durable."""

Saved = Callable[[TaskName, Barrier, int], None]
"""Notes that a task's snapshot is in the store; see `SnapshotRounds.saved`."""


def serve_progress(port: ClientPort, incarnation: int, record: Record) -> None:
    """Let the sinks' workers report to this one: action progress, sink, incarnation, number, place, result."""

    def take(call: Call, path: Path, body: bytes) -> bytes:
        call.caller.require(Right.CHANNEL)
        sink, *numbers = named_parts(path, "sink", "incarnation", "number", "place", "result")
        if not all(_WHOLE.fullmatch(number) for number in numbers):
            raise InputError(f"sink '{sink}': progress is told in whole numbers")
        told, *progress = map(int, numbers)
        if told != incarnation:
            raise StaleStreamError(f"sink '{sink}': incarnation {told} has been replaced by {incarnation}")
        record(sink, Progress(*progress))
        return b""

    port.actions["progress"] = take


def serve_snapshots(port: ClientPort, incarnation: int, saved: Saved) -> None:
    """Let workers report snapshots to this one: action snapshot, component, life, incarnation, task, seq, bytes."""

    def take(call: Call, path: Path, body: bytes) -> bytes:
        call.caller.require(Right.CHANNEL)
        names = ("component", "life", "incarnation", "task", "checkpoint", "bytes")
        component, life, *numbers = named_parts(path, *names)
        if not all(_WHOLE.fullmatch(number) for number in numbers):
            raise InputError(f"component '{component}': snapshots are told of in whole numbers")
        told, task, checkpoint, nbytes = map(int, numbers)
        if told != incarnation:
            raise StaleStreamError(f"component '{component}': incarnation {told} has been replaced by {incarnation}")
        saved((component, task), Barrier(checkpoint, life), nbytes)
        return b""

    port.actions["snapshot"] = take


class ProgressReports:
    """Reports the progress of the sinks here, and the snapshots of the tasks. Any thread may call it; `close` it."""

    def __init__(self, endpoint: Endpoint, incarnation: int) -> None:
        self._client = FlightClient(endpoint)
        self._incarnation = incarnation
        self._waiting: dict[str, Callable[[], None]] = {}
        self._reported = 0
        self._durable = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="reporting progress", daemon=True)
        self._thread.start()

    def report(self, sink: str, progress: Progress) -> None:
        """Have it reported; returns at once."""
        self._add(f"progress of '{sink}'", partial(self._client.report_progress, sink, self._incarnation, progress))

    def report_snapshot(self, task: TaskName, barrier: Barrier, nbytes: int) -> None:
        """Have it reported that a task's snapshot is in the store; returns at once."""
        report = partial(self._client.report_snapshot, task, self._incarnation, barrier, nbytes)
        self._add(f"the snapshot of {task[0]}[{task[1]}]", report)

    def wait(self) -> None:
        """Wait until all that has been reported is durable; raises `StoppedError` if it will not be."""
        with self._changed:
            until = self._reported
            self._changed.wait_for(lambda: self._closed or self._durable >= until)
            if self._durable < until:
                raise StoppedError("the topology has been stopped")

    def close(self) -> None:
        """End the thread; what has not been reported is lost, and whoever waits for it learns that."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._client.abandon(StoppedError("the topology has been stopped"))

    def _add(self, what: str, report: Callable[[], None]) -> None:
        with self._changed:
            self._waiting[what] = report
            self._reported += 1
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._waiting)
                if self._closed:
                    return
                reports, self._waiting = self._waiting, {}
                until = self._reported
            sent = self._send(reports)
            with self._changed:
                if sent:
                    self._durable = until
                else:
                    self._closed = True
                self._changed.notify_all()

    def _send(self, reports: dict[str, Callable[[], None]]) -> bool:
        """Send until it is answered; return whether it was, rather than given up."""
        for what, report in reports.items():
            while True:
                try:
                    report()
                    break
                except InputError as error:  # this worker has been replaced
                    log.warning("%s is refused: %s", what, error)
                    return False
                except InterlaceError as error:
                    log.info("%s waits for the worker with the journal: %s", what, error)
                with self._changed:
                    if self._changed.wait_for(lambda: self._closed, RETRY_SECONDS):
                        return False
        return True
