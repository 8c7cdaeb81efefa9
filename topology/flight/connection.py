"""Connects to a Flight port: every client of ours is made here, with the same trust and the same limits."""

from __future__ import annotations

import pyarrow.flight as flight

from topology.handle.endpoint import Endpoint

CONNECT_SECONDS = 10
"""How long an attempt to connect may take."""

MAX_MESSAGE_BYTES = 1024 * 1024 * 1024
"""The largest message that a client takes; a larger one fails its call instead of filling the memory."""


def connect(endpoint: Endpoint) -> flight.FlightClient:
    """Return a client of an endpoint; it connects with its first call, and trusts only the endpoint's root."""
    return flight.FlightClient(
        endpoint.location,
        tls_root_certs=endpoint.root,
        generic_options=[
            ("grpc.min_reconnect_backoff_ms", CONNECT_SECONDS * 1000),
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.enable_http_proxy", 0),  # rows and tokens go to the endpoint and nowhere else
        ],
    )
