"""Serves the web application from a thread: on loopback, or with TLS on an address that others reach."""

from __future__ import annotations

import logging
import secrets
import socket
import tempfile
import threading
from pathlib import Path
from typing import Self

import uvicorn

from interlace.web.api import application
from interlace.web.desk import Desk
from topology import Certificate, Secret, Tls, TopologyError, check_host, credentials

LOOPBACK = "127.0.0.1"
CLOSE_SECONDS = 10.0

log = logging.getLogger("interlace")


class WebServer:
    """A running server; `close` ends it and its watches, never a topology.

    host: an address of this machine. On any but loopback it needs TLS: `tls` gives a certificate, otherwise one is made
          for this server, and browsers ask whether to trust it.
    port: 0 takes a free one.
    root: what clients of an encrypted server have to trust, as PEM; None: what their system trusts.
    token: what requests have to show; None makes a new one.
    framed: pages of this machine may show the page in a frame, as a notebook does.
    """

    def __init__(
        self,
        desk: Desk,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        token: str | None = None,
        tls: Tls | None = None,
        framed: bool = False,
    ) -> None:
        self._desk = desk
        self._framed = framed
        self.token = Secret(token or secrets.token_urlsafe(32))
        certificate = None
        if tls is not None or not _is_loopback(host):
            certificate = credentials(tls).issue(host)
        check_host(host, certificate)
        self._socket = _listening(host, port)
        self._tls = certificate is not None
        self.root = None if certificate is None else certificate.root
        self.host, self.port = host, self._socket.getsockname()[1]
        config = uvicorn.Config(
            application(desk, str(self.token), port=self.port, framed=framed),
            log_config=None, access_log=False, lifespan="off", ws="none",
            timeout_graceful_shutdown=1, server_header=False, proxy_headers=False,
        )  # fmt: skip
        if certificate is not None:
            _use(config, certificate)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="web server", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address, without the token."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls else 'http'}://{shown}:{self.port}/"

    @property
    def url_with_token(self) -> str:
        """The address for a browser; whoever knows it may do everything that the page can."""
        return f"{self.url}?token={self.token!s}"

    def close(self) -> None:
        """End the server and its watches; harmless when repeated."""
        self._server.should_exit = True
        self._thread.join(CLOSE_SECONDS)
        self._socket.close()
        self._desk.close()

    @property
    def is_serving(self) -> bool:
        """Whether it still answers: nobody has closed it, and it has not failed."""
        return self._thread.is_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"WebServer({self.url!r})"

    def _repr_html_(self) -> str:
        if not self._framed:
            return f'<a href="{self.url_with_token}" target="_blank">Open the page</a>'
        address = f"{self.url}#token={self.token!s}"
        return (
            f'<a href="{address}" target="_blank">Open the page of this topology</a>'
            f'<iframe src="{address}" style="width:100%;height:720px;border:1px solid #8884" '
            f'title="live page"></iframe>'
        )

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])


def _is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(str(address[0]).startswith("127.") or address[0] == "::1" for *_, address in found)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise TopologyError(f"cannot listen on {host}, port {port}: {error.strerror}; name another port") from None
    listener.listen(128)
    return listener


def _use(config: uvicorn.Config, certificate: Certificate) -> None:
    """Load a certificate. Python reads it from files only; they are gone when this returns."""
    with tempfile.TemporaryDirectory(prefix="interlace-") as folder:
        chain, key = Path(folder) / "chain.pem", Path(folder) / "key.pem"
        chain.write_text(certificate.chain_pem)
        key.touch(mode=0o600)
        key.write_text(str(certificate.key_pem))
        config.ssl_certfile, config.ssl_keyfile = str(chain), str(key)
        config.load()
