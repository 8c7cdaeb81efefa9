"""The calls of this process over Arrow Flight, which must be over before the interpreter ends.

A Flight call runs outside the interpreter, and one that fails enters it again to make its exception. If the interpreter
has gone by then, the process crashes: pyarrow takes the GIL of an interpreter that does not exist (a segmentation fault
in `PyGILState_Ensure`). There is time for that: once TLS has been used, gRPC holds up the end of the process for two
seconds, after the interpreter has gone, while a connection is open. A thread that waits for a peer without a network is
likely to fail just then.

So at the end of the program all clients are abandoned, which cancels what they wait for, and the interpreter waits
until every thread has come back. Only an attempt to connect cannot be cancelled; it has a limit of its own.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from topology.graph.errors import StoppedError

EXIT_SECONDS = 15.0
"""How long the end of a program waits for calls; longer than an attempt to connect takes."""

log = logging.getLogger("interlace")


class Abandons(Protocol):
    """A client whose calls can be cancelled."""

    def abandon(self, error: Exception) -> None:
        """End all calls that are under way; those who wait for them raise `error`."""
        ...


class CallsUnderWay:
    """Knows the clients of this process, and how many of its threads are inside a call."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything: a forked child has none of the threads."""
        self._clients: weakref.WeakSet[Abandons] = weakref.WeakSet()
        self._inside = 0
        self._ending = False
        self._lock = threading.Lock()
        self._left = threading.Condition(self._lock)

    def add(self, client: Abandons) -> None:
        """Abandon a client when the program ends, if it is still there; raises `StoppedError` if it is ending."""
        with self._lock:
            if self._ending:
                raise StoppedError("the program is ending")
            self._clients.add(client)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Use it around every call of a Flight client."""
        with self._lock:
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                self._left.notify_all()

    def end(self, seconds: float) -> bool:
        """Abandon all clients, allow no more of them and wait for the threads; return whether all have come back."""
        limit = time.monotonic() + seconds
        with self._lock:
            self._ending = True
            clients = list(self._clients)
        for client in clients:
            client.abandon(StoppedError("the program is ending"))
        with self._lock:
            gone = self._left.wait_for(lambda: not self._inside, max(0.0, limit - time.monotonic()))
        if not gone:
            log.warning("the program ends while %d calls over Arrow Flight are under way", self._inside)
        return gone


calls_under_way = CallsUnderWay()
atexit.register(calls_under_way.end, EXIT_SECONDS)
os.register_at_fork(after_in_child=calls_under_way.reset)
