"""Fetches the rows of a source into an input, where a state is kept: they are in the journal with their offsets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from topology.entry.frames import arrow_table
from topology.entry.ingest import Ingest
from topology.graph.components import FetchedInput, Spout
from topology.graph.errors import StoppedError, TopologyError
from topology.graph.graph import Node, Topology
from topology.spouts.source import Source, SourceSpout


def fetched(topology: Topology) -> Topology:
    """Return the topology with inputs in place of its spouts; one that has no offsets to go on from is refused."""
    return replace(topology, nodes=tuple(_fetched(node) for node in topology.nodes))


def _fetched(node: Node) -> Node:
    spout = node.component
    if not isinstance(spout, Spout):
        return node
    if not isinstance(spout, SourceSpout):
        raise TopologyError(
            f"component '{node.name}' is a spout of its own kind, whose rows cannot be fetched again from an offset: "
            f"make it of a Source (il.from_source), send its rows to an input, or launch without state="
        )
    input_ = FetchedInput(event_time=spout.event_time, source=spout.source, readers=node.parallelism)
    return replace(node, component=input_, parallelism=1)


def is_fetched(node: Node) -> bool:
    """Whether the topology fetches the rows of a component by itself, into an input."""
    return isinstance(node.component, FetchedInput)


class Fetching:
    """Reads a source in a few threads that share its partitions, each behind the rows that the entry has already.

    fail: called with the error of a source that fails.
    """

    def __init__(self, node: Node, entry: Ingest, fail: Callable[[BaseException], None]) -> None:
        described = node.component
        assert isinstance(described, FetchedInput), "only such an input is fetched"
        assert isinstance(described.source, Source), "it takes the place of a spout over a source"
        self._stream = node.name
        self._source = described.source
        self._readers = self._reading = described.readers
        self._entry = entry
        self._fail = fail
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"{node.name}[{number}]", daemon=True)
            for number in range(described.readers)
        ]

    def start(self) -> None:
        """Start the threads, unless all has been fetched."""
        if not self._entry.is_finished(self._stream):
            for thread in self._threads:
                thread.start()

    def join(self, seconds: float) -> list[str]:
        """Wait for the threads, after the entry has been closed; return the names of those that do not end."""
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join(max(0.0, deadline - time.monotonic()))
        return [thread.name for thread in self._threads if thread.is_alive()]

    def _run(self, reader: int) -> None:
        try:
            self._fetch(reader)
            with self._lock:
                self._reading -= 1
                is_last = not self._reading
            if is_last:
                self._entry.end(self._stream)
        except StoppedError:
            return
        except BaseException as error:
            self._fail(error)

    def _fetch(self, reader: int) -> None:
        """Take turns over the partitions of one reader, batch by batch."""
        names = list(self._source.partitions())
        for name in names:  # all of them, so that rows of one are not late for those of another
            self._entry.open(self._stream, name)
        mine = [name for name in names[reader :: self._readers] if self._entry.is_open(self._stream, name)]
        offsets = {name: self._entry.next_offset(self._stream, name) for name in mine}
        left = {name: iter(self._source.read(name, offset)) for name, offset in offsets.items()}
        while left:
            for name, batches in list(left.items()):
                rows = next(batches, None)
                if rows is None:
                    self._entry.end(self._stream, name)
                    del left[name]
                    continue
                table = arrow_table(f"spout '{self._stream}', partition '{name}'", rows)
                for batch in table.combine_chunks().to_batches():
                    self._entry.wait_for_room(self._stream, name)
                    offsets[name] = self._entry.take(self._stream, name, batch, offsets[name])
