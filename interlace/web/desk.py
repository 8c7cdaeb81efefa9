"""Which topologies a server shows: the one that a program holds, or all of a cluster."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from interlace.watching.watch import INTERVAL_SECONDS, Consumer, Watch
from topology import (
    Handle,
    InterlaceError,
    LogLine,
    Status,
    UnknownTopologyError,
    attach,
    joined_cluster,
    stop_topology,
    topologies,
    topology_logs,
    topology_status,
)


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
        self.watch(name).running.stop()

    def close(self) -> None:
        self._watch.close()


class ClusterDesk(Desk):
    """Shows all topologies of a Ray cluster. It is their client: its end harms none of them."""

    def __init__(
        self, address: str | None = None, interval: float = INTERVAL_SECONDS, consumers: tuple[Consumer, ...] = ()
    ) -> None:
        self._address = address
        self._interval = interval
        self._consumers = consumers
        self._watches: dict[str, Watch] = {}
        self._lock = threading.Lock()
        self._joined = ExitStack()
        self._joined.enter_context(joined_cluster(address))

    def list(self) -> Sequence[Status]:
        return topologies(address=self._address)

    def watch(self, name: str) -> Watch:
        with self._lock:
            known = self._watches.get(name)
            if known is not None and not known.is_over:
                return known
            if known is not None:
                self._forget(name)
            watch = Watch(attach(name, address=self._address), interval=self._interval, consumers=self._consumers)
            watch.start()
            self._watches[name] = watch
            return watch

    def status(self, name: str) -> Status:
        return topology_status(name, address=self._address)

    def logs(self, name: str, after: int) -> Sequence[LogLine]:
        return topology_logs(name, after, address=self._address)

    def stop(self, name: str) -> None:
        stop_topology(name, address=self._address)

    def close(self) -> None:
        with self._lock:
            for name in [*self._watches]:
                self._forget(name)
            self._joined.close()

    def _forget(self, name: str) -> None:
        watch = self._watches.pop(name)
        watch.close()
        with suppress(InterlaceError):
            watch.running.__exit__(None, None, None)  # lets go of a topology that goes on
