"""One thread that commits for many: whatever is appended while it syncs shares the next sync."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from topology.durable.log import Log
from topology.durable.record import Position, Record
from topology.durable.steps import Steps, finish
from topology.graph.errors import InterlaceError, StoppedError, StoreError

RETRY_SECONDS = 0.5
"""How long to wait before a group is written again to a disk that was full or failed."""


class Ticket:
    """The promise that a record will be durable."""

    def __init__(self, position: Position) -> None:
        self.position = position
        self._done = threading.Event()
        self._error: InterlaceError | None = None
        self._then: Callable[[Ticket], None] | None = None

    @property
    def durable(self) -> bool:
        """Whether the record survives."""
        return self._done.is_set() and self._error is None

    @property
    def error(self) -> InterlaceError | None:
        """Why the record will never be acknowledged, or None."""
        return self._error

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the record is durable; False after the timeout. Raises why it will never be."""
        if not self._done.wait(timeout):
            return False
        if self._error is not None:
            raise self._error
        return True


class GroupCommit:
    """Makes a log thread-safe, and commits whenever something waits. `close` it.

    A full disk or a failing store is tried again until it works or `close` is called; `trouble` says what is wrong.
    A successor ends it: all tickets fail with `FencedError`.

    threaded: whether a thread commits; if not, whoever made it calls `round_steps`, as a simulation does.
    on_end:   called with the reason when nothing will be durable any more; None: nobody asks.
    """

    def __init__(self, log: Log, threaded: bool = True) -> None:
        self._log = log
        self._changed = threading.Condition()
        self._tickets: deque[Ticket] = deque()
        self._trim_before = 0
        self._trim_because: Position | None = None
        self._closing = False
        self._error: InterlaceError | None = None
        self.trouble: str | None = None
        self.on_end: Callable[[InterlaceError], None] | None = None
        self._thread: threading.Thread | None = None
        if threaded:
            self._thread = threading.Thread(target=self._run_until_error, name="group-commit", daemon=True)
            self._thread.start()

    @property
    def has_room(self) -> bool:
        """Whether more should be appended."""
        return self._log.has_room

    @property
    def waiting_bytes(self) -> int:
        """What is held in memory because it is not durable yet."""
        with self._changed:
            return self._log.waiting_bytes

    def append(self, record: Record, then: Callable[[Ticket], None] | None = None) -> Ticket:
        """Append a record. `then` is called by the committing thread when it is durable, or never will be: be brief."""
        return self._add(lambda: self._log.append(record), then)

    def rotate(self, start: Record, then: Callable[[Ticket], None] | None = None) -> Ticket:
        """Begin a segment with its start record."""
        return self._add(lambda: self._log.rotate(start), then)

    def trim(self, before: int, because: Position | None = None) -> None:
        """Have the segments before a number removed; its start record must be durable.

        because: the record from which it follows that they are not needed: they stay until it is durable. Otherwise a
                 crash could leave neither the segments nor the reason why they are gone.
        """
        with self._changed:
            self._check_open()
            if self._log.durable is None or before > self._log.durable.segment:
                raise ValueError(f"segment {before} has no durable start record: wait for its ticket")
            if before > self._trim_before:
                self._trim_before, self._trim_because = before, because
            self._changed.notify_all()

    def close(self) -> None:
        """Commit what waits, and end the thread. What a full disk does not take then fails with `StoppedError`."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    @property
    def error(self) -> InterlaceError | None:
        """Why nothing more will become durable, or None."""
        return self._error

    @property
    def durable(self) -> Position | None:
        """The last record that survives; None until the first commit."""
        return self._log.durable

    @property
    def has_work(self) -> bool:
        """Whether something waits to become durable, or to be removed."""
        return bool(self._tickets or self._may_trim()) and self._error is None

    def round_steps(self) -> Steps[bool]:
        """Commit once what waits, in steps; False when there will be no more commits."""
        try:
            steps = self._log.commit_steps()
            with self._changed:  # the first step chooses the records; the others are the store's work
                next(steps, None)
            yield from steps
            self._trim()
            self.trouble = "the disk is full" if self._log.disk_full else None
        except StoreError as error:
            self.trouble = str(error)
        except InterlaceError as error:
            self._end(error)
            return False
        self._acknowledge()
        return True

    def _add(self, add: Callable[[], Position], then: Callable[[Ticket], None] | None) -> Ticket:
        with self._changed:
            self._check_open()
            ticket = Ticket(add())
            ticket._then = then
            self._tickets.append(ticket)
            self._changed.notify_all()
            return ticket

    def _check_open(self) -> None:
        if self._error is not None:
            raise self._error
        if self._closing:
            raise StoppedError("the log is closed: take it over again to write more")

    def _run_until_error(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self._end(StoppedError(f"the log has stopped: {error!r}"))
            raise

    def _run(self) -> None:
        while self._wait_for_work():
            if not finish(self.round_steps()):
                return
            if self.trouble is not None and not self._pause():
                self._end(StoppedError(f"the log was closed before all was durable: {self.trouble}"))
                return

    def _wait_for_work(self) -> bool:
        """Wait for something to do; False if nothing will come."""
        with self._changed:
            self._changed.wait_for(lambda: self._tickets or self._may_trim() or self._closing)
            return bool(self._tickets or self._may_trim())

    def _trim(self) -> None:
        with self._changed:  # a segment that begins meanwhile would list those before it
            if self._may_trim():
                self._log.trim(self._trim_before)
                self._trim_before, self._trim_because = 0, None

    def _may_trim(self) -> bool:
        because, durable = self._trim_because, self._log.durable
        return bool(self._trim_before) and (because is None or (durable is not None and because <= durable))

    def _acknowledge(self) -> None:
        durable = self._log.durable
        while durable is not None and self._tickets and self._tickets[0].position <= durable:
            self._settle(self._tickets.popleft(), None)

    def _pause(self) -> bool:
        """Wait before the next attempt; False if there is to be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing, RETRY_SECONDS)
            return not self._closing

    def _end(self, error: InterlaceError) -> None:
        with self._changed:
            self._error = error
        while self._tickets:
            self._settle(self._tickets.popleft(), error)
        if self.on_end is not None:
            self.on_end(error)

    def _settle(self, ticket: Ticket, error: InterlaceError | None) -> None:
        ticket._error = error
        ticket._done.set()
        if ticket._then is not None:
            ticket._then(ticket)
