"""How a sink's worker tells the worker with the journal how far results have been acknowledged.

The two are often different processes. Only the latest progress of each sink matters, so reports that have not been
sent are replaced by newer ones. One thread sends them, and tries again while the other worker cannot be reached: if
that has died, this worker is told to start anew, which ends the thread.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable

from topology.flight.client import FlightClient
from topology.flight.client_port import Call, ClientPort
from topology.flight.operations import Path, named_parts
from topology.graph.errors import InputError, InterlaceError, StaleStreamError, StoppedError
from topology.handle.endpoint import Endpoint
from topology.handle.results_queue import Progress
from topology.security.tokens import Right

RETRY_SECONDS = 0.5

log = logging.getLogger("interlace")

_WHOLE = re.compile(r"-?[0-9]{1,18}")

Record = Callable[[str, Progress], None]
"""Records the progress of a sink, and waits until that is durable."""


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


class ProgressReports:
    """Reports the progress of the sinks here. Any thread may call it; `close` it."""

    def __init__(self, endpoint: Endpoint, incarnation: int) -> None:
        self._client = FlightClient(endpoint)
        self._incarnation = incarnation
        self._waiting: dict[str, Progress] = {}
        self._reported = 0
        self._durable = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="reporting progress", daemon=True)
        self._thread.start()

    def report(self, sink: str, progress: Progress) -> None:
        """Have it reported; returns at once."""
        with self._changed:
            self._waiting[sink] = progress
            self._reported += 1
            self._changed.notify_all()

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

    def _send(self, reports: dict[str, Progress]) -> bool:
        """Send until it is answered; return whether it was, rather than given up."""
        for sink, progress in reports.items():
            while True:
                try:
                    self._client.report_progress(sink, self._incarnation, progress)
                    break
                except InputError as error:  # this worker has been replaced
                    log.warning("progress of '%s' is refused: %s", sink, error)
                    return False
                except InterlaceError as error:
                    log.info("progress of '%s' waits for the worker with the journal: %s", sink, error)
                with self._changed:
                    if self._changed.wait_for(lambda: self._closed, RETRY_SECONDS):
                        return False
        return True
