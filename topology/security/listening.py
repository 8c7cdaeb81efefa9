"""Where a process may listen: on loopback, and with a certificate on any address of its machine."""

from __future__ import annotations

import ipaddress
import socket

from topology.graph.errors import TopologyError
from topology.handle.endpoint import LOOPBACK
from topology.security.tls import Certificate


def check_host(host: str, certificate: Certificate | None) -> None:
    """Refuse a host that this machine does not have, or that other machines could reach without TLS."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        addresses = [ipaddress.ip_address(address[0]) for *_, address in found]
        if any(address.is_unspecified for address in addresses):
            raise TopologyError(f"cannot listen on {host}: name the address of this machine that clients connect to")
        if certificate is None and not all(address.is_loopback for address in addresses):
            raise TopologyError(
                f"cannot listen on {host} without a certificate: other machines reach this address, and rows and "
                f"tokens would travel unencrypted; use {LOOPBACK}, or give the port a certificate for {host}"
            )
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as attempt:
                attempt.bind(address)
    except OSError as error:
        raise TopologyError(
            f"cannot listen on {host}: {error.strerror}; use an address of this machine ({socket.gethostname()})"
        ) from None
