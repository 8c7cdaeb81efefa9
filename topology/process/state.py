"""Opens the state of a topology: the journal that it goes on from, and the snapshots of its tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit

import pyarrow as pa

from topology.durable.copying import restore
from topology.durable.open_store import open_store, place_below
from topology.durable.store import Store
from topology.entry.input_guard import InputGuard
from topology.graph.components import Sink
from topology.graph.errors import TopologyError
from topology.graph.graph import Topology
from topology.graph.messages import Barrier
from topology.journal.journal import Journal
from topology.journal.new_query import NewQuery
from topology.journal.opening import Opened, open_journal
from topology.journal.snapshots import Snapshots, copy_snapshots
from topology.spouts.fetching import fetched
from topology.steps.sequenced import sequenced

SNAPSHOTS = "snapshots"
"""The folder of the tasks' snapshots, beside the log."""


def with_state(topology: Topology) -> Topology:
    """Return the topology as it runs with a state: unless it is a join, a sequencer puts all rows in steps.

    Inputs take the place of spouts, so that the journal has their rows.

    A topology that could not go on from a state is refused.
    """
    topology = fetched(topology)
    if topology.sequencer:
        return topology
    deciding = topology.deciding
    if deciding is None or topology.parts:
        return sequenced(topology)
    if deciding.parallelism != 1:
        raise TopologyError(
            f"topology '{topology.name}' cannot keep its state: component '{deciding.name}' decides in what order rows "
            f"come, and has {deciding.parallelism} tasks; give it one, or launch without state="
        )
    return topology


def is_local_directory(uri: str | Path) -> bool:
    """Whether a URI names a place that only one machine sees."""
    return isinstance(uri, Path) or urlsplit(uri).scheme in ("", "file")


@dataclass(frozen=True)
class StatePlace:
    """Where the state of a topology is kept.

    uri:       a directory, or a URI of `pyarrow.fs`.
    name:      of the topology; its state is below the URI, under this name.
    savepoint: what to begin with if nothing is kept there yet; None: nothing.
    new_query: what is kept there may be for another query, from whose rows this one goes on.
    """

    uri: str | Path = field(repr=False)  # it may hold keys
    name: str
    savepoint: str | None = field(default=None, repr=False)
    new_query: bool = False

    def open(self, topology: Topology, spill_directory: str | None = None) -> Opened:
        """Open the journal, for a topology that `with_state` has made, or for the share of a worker."""
        deciding = topology.deciding
        assert deciding is not None
        store = open_store(self.uri, _folder(self.name))
        if self.savepoint is not None:
            saved = open_store(self.savepoint)
            try:
                restore(saved, store, partial(self._restore_snapshots, self.savepoint, topology))
            finally:
                saved.close()
        return open_journal(
            store,
            topology.identity,
            [each for each in topology.sinks if not _is_aside(topology, each)],
            deciding.component.start_for,
            spill_directory=spill_directory,
            with_snapshots=bool(topology.sequencer),
            intake=topology.intake,
            new_query=NewQuery(partial(_check_schemas, topology), deciding.component.adopt) if self.new_query else None,
        )

    def open_snapshots(self, topology: Topology) -> Snapshots | None:
        """Open the place for the snapshots of the tasks; None if they keep none."""
        return Snapshots(open_store(self.uri, self._snapshots)) if topology.sequencer else None

    def save(self, journal: Journal) -> str:
        """Copy what the topology needs to go on from here, below the URI; return the place of the copy."""
        folder = f"savepoints/{_folder(self.name)}"

        def copy(name: str, barriers: Collection[Barrier]) -> None:
            if barriers:
                with (
                    _opened(self.uri, self._snapshots) as kept,
                    _opened(self.uri, f"{folder}/{name}/{SNAPSHOTS}") as to,
                ):
                    copy_snapshots(kept, to, barriers)

        name = journal.save(lambda name: open_store(self.uri, f"{folder}/{name}"), copy)
        return place_below(self.uri, f"{folder}/{name}")

    @property
    def _snapshots(self) -> str:
        return f"{_folder(self.name)}/{SNAPSHOTS}"

    def _restore_snapshots(self, savepoint: str, topology: Topology) -> None:
        if not topology.sequencer:
            return
        with _opened(savepoint, SNAPSHOTS) as saved, _opened(self.uri, self._snapshots) as target:
            copy_snapshots(saved, target)


def _opened(uri: str | Path, folder: str) -> AbstractContextManager[Store]:
    return closing(open_store(uri, folder))


def _check_schemas(topology: Topology, schemas: Mapping[str, pa.Schema]) -> None:
    for stream, schema in schemas.items():
        InputGuard(stream, topology.require_input(stream)).pin(schema)


def _folder(name: str) -> str:
    return quote(name, safe=" ")


def _is_aside(topology: Topology, sink: str) -> bool:
    component = topology.node(sink).component
    return isinstance(component, Sink) and component.aside
