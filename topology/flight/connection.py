"""Connects to a Flight port: every client of ours is made here, with the same trust and the same limits.

A stream has no deadline, because it may be silent for hours. It notices a dead link all the same: a peer that has been
silent for `KEEPALIVE_SECONDS` is pinged, and a ping that is not answered in `PING_SECONDS` ends the connection and all
its streams. `ClientPort` allows such pings; a server of Arrow's own would close the connection after a few.
"""

from __future__ import annotations

import pyarrow.flight as flight

from topology.handle.endpoint import Endpoint
from topology.security.tls import Certificate

CONNECT_SECONDS = 10
"""How long an attempt to connect may take."""

KEEPALIVE_SECONDS = 10.0
"""After how long a silent peer is pinged."""

PING_SECONDS = 10.0
"""How long it has to answer."""

MAX_MESSAGE_BYTES = 1024 * 1024 * 1024
"""The largest message that a client takes; a larger one fails its call instead of filling the memory."""


def connect(endpoint: Endpoint, certificate: Certificate | None = None) -> flight.FlightClient:
    """Return a client of an endpoint; it connects with its first call, and trusts only the endpoint's root.

    certificate: what this process shows to the port, where it has one that identifies it.
    """
    shown = {}
    if certificate is not None and certificate.identifies_clients:
        shown = {"cert_chain": str(certificate.chain_pem), "private_key": str(certificate.key_pem)}
    return flight.FlightClient(
        endpoint.location,
        tls_root_certs=endpoint.root,
        **shown,
        generic_options=[
            ("grpc.min_reconnect_backoff_ms", CONNECT_SECONDS * 1000),
            ("grpc.keepalive_time_ms", round(KEEPALIVE_SECONDS * 1000)),
            ("grpc.keepalive_timeout_ms", round(PING_SECONDS * 1000)),  # of TCP: bytes not acknowledged
            ("grpc.http2.ping_timeout_ms", round(PING_SECONDS * 1000)),  # of HTTP/2: a ping not answered
            ("grpc.http2.max_pings_without_data", 0),  # no bound
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.enable_http_proxy", 0),  # rows and tokens go to the endpoint and nowhere else
        ],
    )
