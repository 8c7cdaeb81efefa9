"""`il.ui(running)`: the live page of a topology that this program holds, in a notebook or a browser."""

from __future__ import annotations

from interlace.web.desk import HandleDesk
from interlace.web.server import LOOPBACK, WebServer
from topology import Handle, Tls


def ui(running: Handle, *, host: str = LOOPBACK, port: int = 0, tls: Tls | None = None) -> WebServer:
    """Serve the live page of a running topology from this process; in a notebook, the result shows the page.

    The page needs the token that is part of `url_with_token`. It ends with `close`, with a `with` block or with the
    program; the topology does not end with it, nor it with the topology.

    host: an address of this machine; any but loopback gets TLS, with a certificate that is made for this server.
    port: 0 takes a free one.
    tls:  a certificate of your own.

    >>> import interlace as il
    >>> join = il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(1_000))
    >>> with join.launch() as running, il.ui(running) as page:
    ...     print(page.url.startswith("http://127.0.0.1:"))
    True
    """
    return WebServer(HandleDesk(running), host=host, port=port, tls=tls, framed=True)
