"""Which topologies a server shows: the one that a program holds, or all of a cluster."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from typing import TypeVar

from interlace.watching.draining import wait_until_read
from interlace.watching.look import Look
from interlace.watching.watch import INTERVAL_SECONDS, Consumer, Watch
from topology import (
    ConnectionLostError,
    Handle,
    InterlaceError,
    LogLine,
    State,
    Status,
    UnknownTopologyError,
    attach,
    joined_cluster,
    stop_topology,
    topologies,
    topology_logs,
    topology_status,
)

ATTACH_SECONDS = 10.0
"""A topology that has not answered for so long is out of reach for the request; the attempt goes on."""

LIST_SECONDS = 2.0
"""Nobody waits longer for a list, once there has been one: one silent controller hides no other topology."""

Result = TypeVar("Result")


class Desk(ABC):
    """Where requests find topologies. Any thread may call it."""

    @abstractmethod
    def list(self) -> Sequence[Status]:
        """The status of every topology."""

    @abstractmethod
    def watch(self, name: str) -> Watch:
        """The watch of a topology that runs; raises an `UnknownTopologyError` if there is none of that name."""

    @abstractmethod
    def status(self, name: str) -> Status:
        """The status of a topology, also of one that has failed."""

    @abstractmethod
    def logs(self, name: str, after: int) -> Sequence[LogLine]:
        """What a topology has logged after a line, also of one that has failed."""

    @abstractmethod
    def stop(self, name: str) -> None:
        """Stop a topology, for everyone who uses it."""

    @abstractmethod
    def close(self) -> None:
        """End all watches. The topologies go on."""

    def stop_when_read(self, name: str, running: Handle, seconds: float) -> None:
        """Stop a topology whose inputs have ended, as soon as all results have been read; returns at once."""

        def stop() -> None:
            with suppress(InterlaceError):  # somebody else has stopped it, or it has failed and says so itself
                wait_until_read(running, seconds)
                self.stop(name)

        threading.Thread(target=stop, name=f"draining {name}", daemon=True).start()

    def looks(self) -> tuple[Sequence[Look], Sequence[Status]]:
        """The last look at every topology that can be looked at, and the status of the others."""
        return self._looked(self.list(), self.watch)

    def _looked(
        self, listed: Sequence[Status], find: Callable[[str], Watch]
    ) -> tuple[Sequence[Look], Sequence[Status]]:
        looks, others = [], []
        for status in listed:
            look = None
            if status.state is not State.FAILED:
                with suppress(InterlaceError):  # it has ended meanwhile, or does not answer
                    look = find(status.name).now()[0]
            if look is None:
                others.append(status)
            else:
                looks.append(look)
        return looks, others


class HandleDesk(Desk):
    """Shows the one topology whose handle a program holds."""

    def __init__(
        self, running: Handle, interval: float = INTERVAL_SECONDS, consumers: tuple[Consumer, ...] = ()
    ) -> None:
        self._running = running
        self._watch = Watch(running, interval=interval, consumers=consumers)
        self._watch.start()

    def list(self) -> Sequence[Status]:
        return [self._running.status()]

    def watch(self, name: str) -> Watch:
        if name != self._running.name:
            raise UnknownTopologyError(f"there is no topology '{name}' here, only '{self._running.name}'")
        return self._watch

    def status(self, name: str) -> Status:
        return self.watch(name).running.status()

    def logs(self, name: str, after: int) -> Sequence[LogLine]:
        return self.watch(name).running.logs(after)

    def stop(self, name: str) -> None:
        running = self.watch(name).running
        if running.status().state is not State.FAILED:  # that one has ended; whoever holds it is told by `stop` why
            running.stop()

    def close(self) -> None:
        self._watch.close()


class ClusterDesk(Desk):
    """Shows all topologies of a Ray cluster. It is their client: its end harms none of them.

    Every topology is reached in a thread of its own, so one whose controller is silent keeps only those waiting who ask
    for it.

    watches_all: watch every topology from its start to its end, not only those that somebody asks for.
    """

    def __init__(
        self,
        address: str | None = None,
        interval: float = INTERVAL_SECONDS,
        consumers: tuple[Consumer, ...] = (),
        *,
        watches_all: bool = False,
    ) -> None:
        self._address = address
        self._interval = interval
        self._consumers = consumers
        self._watches: dict[str, Future[Watch]] = {}
        self._listed: tuple[Status, ...] | None = None
        self._listing: Future[tuple[Status, ...]] | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._joined = ExitStack()
        self._joined.enter_context(joined_cluster(address))
        if watches_all:
            threading.Thread(target=self._watch_all, name="watching all topologies", daemon=True).start()

    def list(self) -> Sequence[Status]:
        with self._lock:
            if self._listing is None or self._listing.done():
                self._listing = _in_thread("listing topologies", lambda: topologies(address=self._address))
            listing, last = self._listing, self._listed
        try:
            found = listing.result(None if last is None else LIST_SECONDS)
        except TimeoutError:
            assert last is not None
            return last
        self._listed = found
        return found

    def watch(self, name: str) -> Watch:
        return self._found(name, ATTACH_SECONDS)

    def looks(self) -> tuple[Sequence[Look], Sequence[Status]]:
        listed = self.list()
        limit = time.monotonic() + LIST_SECONDS
        return self._looked(listed, lambda name: self._found(name, max(0.0, limit - time.monotonic())))

    def status(self, name: str) -> Status:
        return topology_status(name, address=self._address)

    def logs(self, name: str, after: int) -> Sequence[LogLine]:
        return topology_logs(name, after, address=self._address)

    def stop(self, name: str) -> None:
        stop_topology(name, address=self._address)

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            watches = [*self._watches.values()]
            self._watches.clear()
        for watch in watches:
            watch.add_done_callback(_let_go)
        self._joined.close()

    def _found(self, name: str, seconds: float) -> Watch:
        """The watch of a topology, if it answers within some seconds; the attempt goes on if it does not."""
        past = None
        with self._lock:
            known = self._watches.get(name)
            if known is None or _is_past(known):
                past = known
                known = self._watches[name] = _in_thread(f"attaching to {name}", lambda: self._begun(name))
        if past is not None:
            _let_go(past)
        try:
            return known.result(seconds)
        except TimeoutError:
            raise ConnectionLostError(
                f"'{name}' does not answer; if it stays silent, look at its node or stop it with `interlace kill`"
            ) from None

    def _begun(self, name: str) -> Watch:
        running = attach(name, address=self._address)
        watch = Watch(running, interval=self._interval, consumers=self._consumers)
        try:
            watch.start()
        except BaseException:
            running.__exit__(None, None, None)
            raise
        return watch

    def _watch_all(self) -> None:
        while not self._closed.wait(self._interval):
            try:
                self.looks()
            except InterlaceError:  # the cluster is out of reach for the moment
                continue


def _in_thread(name: str, function: Callable[[], Result]) -> Future[Result]:
    """Call a function in a thread of its own, which does not outlive the program."""
    future: Future[Result] = Future()

    def call() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=call, name=name, daemon=True).start()
    return future


def _is_past(watch: Future[Watch]) -> bool:
    """Whether a watch has failed to begin, or has no more to see."""
    return watch.done() and (watch.exception() is not None or watch.result().is_over)


def _let_go(begun: Future[Watch]) -> None:
    """End a watch, and let go of its topology, which goes on."""
    if begun.exception() is None:
        watch = begun.result()
        watch.close()
        with suppress(InterlaceError):
            watch.running.__exit__(None, None, None)
