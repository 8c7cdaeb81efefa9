"""Opens the state of a topology: the journal that it goes on from."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlsplit

from topology.durable.open_store import open_store
from topology.graph.components import Sink, Spout
from topology.graph.errors import TopologyError
from topology.graph.graph import Node, Topology
from topology.journal.opening import Opened, open_journal


def check_state(topology: Topology) -> Node:
    """Return the component that decides; a topology that could not go on from a state is refused."""
    deciding = topology.deciding
    if deciding is None or deciding.parallelism != 1:
        raise TopologyError(
            f"topology '{topology.name}' cannot keep its state: no component puts its rows in one order, as the gate "
            f"of a join does; launch it without state="
        )
    for node in topology.nodes:
        if isinstance(node.component, Spout):
            raise TopologyError(
                f"component '{node.name}' is a spout, whose rows are not kept: send them to an input instead, or "
                f"launch without state="
            )
    return deciding


def is_local_directory(uri: str | Path) -> bool:
    """Whether a URI names a place that only one machine sees."""
    return isinstance(uri, Path) or urlsplit(uri).scheme in ("", "file")


def open_state(uri: str | Path, name: str, topology: Topology, spill_directory: str | None) -> Opened:
    """Open what is kept under a name, for a topology that `check_state` has accepted, or for the share of a worker."""
    deciding = topology.deciding
    assert deciding is not None
    sinks = [each for each in topology.sinks if not _is_aside(topology, each)]
    return open_journal(
        open_store(uri, quote(name, safe=" ")),
        topology.identity,
        sinks,
        deciding.component.start_for,
        spill_directory=spill_directory,
    )


def _is_aside(topology: Topology, sink: str) -> bool:
    component = topology.node(sink).component
    return isinstance(component, Sink) and component.aside
