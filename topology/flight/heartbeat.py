"""Heartbeats of this process's Flight connections, so that a dead link or a frozen peer ends the streams on it.

gRPC notices a dead connection with HTTP/2 pings (`connection.py` asks for them), but a Flight server allows a ping only
every five minutes unless it has sent something since the last one; a client that pings more often is disconnected with
"too many pings", and pyarrow cannot change that setting of a server. So each connection makes a tiny call every few
seconds. While the peer answers it, gRPC sees bytes arrive and sends no ping at all. When the peer falls silent, gRPC
pings it, gets no answer, closes the connection, and all its streams fail.

The call's own failure means nothing here: the streams of the connection report it.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

from topology.flight.auth import action_options
from topology.flight.operations import HEARTBEAT, action

HEARTBEAT_SECONDS = 4.0
ANSWER_SECONDS = 2.0
"""How long one peer may delay the heartbeats of the others."""


class Heartbeats:
    """Calls each watched client in turn, in one thread, which ends with the last client."""

    def __init__(self, seconds: float = HEARTBEAT_SECONDS) -> None:
        self._seconds = seconds
        self._clients: dict[int, tuple[weakref.ref[Any], Any]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()
        atexit.register(self._end)

    def watch(self, client: flight.FlightClient, token: str) -> None:
        """Keep the connection of a client alive until the client is closed or dropped."""
        options = action_options(token, ANSWER_SECONDS)
        with self._lock:
            self._clients[id(client)] = (weakref.ref(client), options)
            if self._thread is None or not self._thread.is_alive():  # a forked child has the object, but no thread
                self._thread = threading.Thread(target=self._run, name="Flight heartbeats", daemon=True)
                self._thread.start()

    @property
    def watched(self) -> int:
        """How many clients have heartbeats."""
        with self._lock:
            return len(self._clients)

    def _run(self) -> None:
        while True:
            if self._ending.wait(self._seconds):
                return
            with self._lock:
                watched = list(self._clients.items())
            for key, (reference, options) in watched:
                if self._ending.is_set():
                    return
                client = reference()
                if client is None or not _beat(client, options):
                    self._forget(key, reference)
                del client  # it may be the last reference
            with self._lock:
                if not self._clients:
                    self._thread = None
                    return

    def _end(self) -> None:
        """Let the call under way finish: a thread that comes back from Arrow when the interpreter has gone crashes."""
        self._ending.set()
        thread = self._thread
        if thread is not None:
            thread.join(2 * ANSWER_SECONDS)

    def _forget(self, key: int, reference: weakref.ref[Any]) -> None:
        with self._lock:
            if key in self._clients and self._clients[key][0] is reference:  # its id may belong to another by now
                del self._clients[key]


def _beat(client: flight.FlightClient, options: Any) -> bool:
    """Call a client's peer; return whether the client is still open."""
    try:
        for _ in client.do_action(action(HEARTBEAT), options):
            pass
    except pa.ArrowInvalid:
        return False
    except (flight.FlightError, pa.ArrowException, OSError):
        pass
    return True


heartbeats = Heartbeats()
