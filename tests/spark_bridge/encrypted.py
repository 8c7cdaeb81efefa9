"""Topologies of this process whose endpoints speak TLS, as those of a cluster do."""

from __future__ import annotations

from typing import Any

import pytest

from topology import Authority, Credentials
from topology.flight.client_port import ClientPort
from topology.flight.server import TopologyServer
from topology.local import running as local_running


def encrypt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let topologies that are launched from now on show a certificate of their own."""
    credentials = Credentials()

    def encrypted(topology: Any, ingest: Any, results: Any, failure: Any, quotas: Any, **others: Any) -> TopologyServer:
        authority = Authority()
        port = ClientPort(authority, certificate=credentials.issue("127.0.0.1"), quotas=quotas)
        return TopologyServer(topology, ingest, results, failure, port, authority, **others)

    monkeypatch.setattr(local_running, "TopologyServer", encrypted)
