"""A relay between a client and a port: records every byte, and can go silent like a cut cable."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from topology import Endpoint


class Relay:
    """Listens on loopback and passes bytes on to one port, both ways."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._silent = threading.Event()
        self._recorded: list[bytes] = []
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    def before(self, endpoint: Endpoint) -> Endpoint:
        """The same endpoint, reached through this relay."""
        location = f"{urlsplit(endpoint.location).scheme}://127.0.0.1:{self.port}"
        return Endpoint(location, endpoint.token, endpoint.root)

    @property
    def port(self) -> int:
        """Where the relay listens."""
        return int(self._listener.getsockname()[1])

    @property
    def recorded(self) -> bytes:
        """All bytes so far."""
        return b"".join(self._recorded)

    def cut(self) -> None:
        """Drop every byte from now on; neither end learns that the other has closed."""
        self._silent.set()

    def close(self) -> None:
        for each in [self._listener, *self._sockets]:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
                called = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                return
            self._sockets += [caller, called]
            for source, target in ((caller, called), (called, caller)):
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while received := source.recv(65536):
                if not self._silent.is_set():
                    self._recorded.append(received)
                    target.sendall(received)
            if not self._silent.is_set():
                target.shutdown(socket.SHUT_WR)
        except OSError:
            return


@contextmanager
def relayed(port: int) -> Iterator[Relay]:
    relay = Relay(port)
    try:
        yield relay
    finally:
        relay.close()
