"""A launched topology: checks what programs send and ask, before a runtime does it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa

from topology.entry.frames import Rows, arrow_table
from topology.graph.errors import InputError, OffsetGapError, OutOfOrderError, TopologyError
from topology.graph.event_time import check_event_time, event_times, first_backwards
from topology.graph.graph import Topology
from topology.graph.rescaling import rescaled
from topology.handle.handle import Handle, log
from topology.handle.results import Reading
from topology.placement.wishes import Wish
from topology.steps.sequenced import described


def warn_without_sink(topology: Topology) -> None:
    """Log a warning for a topology whose results nobody can read."""
    if not topology.sinks:
        log.warning(
            "topology '%s' has no sink, so nobody can read what its components emit: add builder.sink(), unless they "
            "write it elsewhere",
            topology.name,
        )


class RunningTopology(Handle):
    """The handle that `Runtime.launch` returns; each runtime implements the methods that begin with `_`."""

    def __init__(self, topology: Topology, name: str) -> None:
        self._topology = topology
        self.name = name
        self._known_schemas: dict[str, pa.Schema] = {}

    @property
    def topology(self) -> Topology:
        return self._topology

    def send(self, stream: str, rows: Rows, source: str | None = None, *, offset: int | None = None) -> int:
        batches = self._batches(stream, rows)
        if offset is not None:
            _check_number(f"stream '{stream}': offset", offset, 0)
        return self._send_all(stream, source or stream, batches, offset)

    def check_rows(self, stream: str, rows: Rows, source: str | None = None, offset: int | None = None) -> None:
        """Raise the error that `send` would raise for the first of these rows, and before it sends anything."""
        if len(self._batches(stream, rows)) == 1 and isinstance(rows, pa.Table):
            self._check_order(stream, rows)
        if offset is not None:
            _check_number(f"stream '{stream}': offset", offset, 0)
            known = self.next_offset(stream, source)
            if offset > known:
                raise OffsetGapError.between(stream, source or stream, known, offset)

    def open(self, stream: str, *sources: str, behind: str | None = None) -> None:
        self.topology.require_input(stream)
        for source in sources:
            self._open(stream, source, behind)

    def finish(self, stream: str | None = None, source: str | None = None) -> None:
        if stream is None and source is not None:
            raise InputError(f"name the stream of source '{source}'")
        if stream is not None:
            self.topology.require_input(stream)
        for name in self.topology.inputs if stream is None else [stream]:
            self._finish(name, source)

    def open_reader(self, sink: str | None, after: int | None, take_over: bool) -> Reading:
        if after is not None:
            _check_number("after", after, -1)
        return self._read(self._sink(sink), after, take_over)

    def acknowledge(self, number: int, sink: str | None = None) -> None:
        _check_number("the number to acknowledge", number, -1)
        self._acknowledge(self._sink(sink), number)

    def rebalance(self, *, placement: Wish | None = None, **counts: Any) -> None:
        """As `Handle.rebalance`. `placement`: on a cluster, how tasks share workers from now on; None: as before."""
        self.change(rescaled(self.topology, counts), placement)

    @abstractmethod
    def change(self, topology: Topology, placement: Wish | None = None, make_handle: MakeHandle | None = None) -> None:
        """Go on with another topology of the same identity, from the journal.

        make_handle: as in `Runtime.launch`; None: as before.
        """

    def deactivate(self) -> None:
        self._set_active(False)

    def activate(self) -> None:
        self._set_active(True)

    @abstractmethod
    def _set_active(self, active: bool) -> None:
        """Take rows from now on, or none."""

    @property
    @abstractmethod
    def _is_durable(self) -> bool:
        """Whether its state is kept."""

    def _check_change(self, topology: Topology) -> None:
        """Refuse what cannot go on from the journal of this topology."""
        if not self._is_durable:
            raise self._stateless("other tasks could not go on where these are")
        if self.topology.sequencer:
            before, after = described(self.topology), described(topology)
            if before != after:
                raise TopologyError(
                    f"topology '{self.name}' can go on in other workers, and its joins with other elements, but other "
                    f"components keep their tasks, as snapshots belong to the tasks that took them: launch it anew, "
                    f"with another name or another place for its state. It is: {before}; this one is: {after}"
                )
            return
        same = (self.topology.identity, set(self.topology.inputs), set(self.topology.sinks))
        if (topology.identity, set(topology.inputs), set(topology.sinks)) != same:
            raise TopologyError(
                f"topology '{self.name}' can go on with other tasks, but its inputs, its sinks and what its results "
                f"mean stay: {self.topology.identity}; this one is: {topology.identity}"
            )

    def _check_savepoint(self) -> None:
        """Refuse a savepoint where no state is kept."""
        if not self._is_durable:
            raise self._stateless("there is nothing to save")

    def _stateless(self, so: str) -> TopologyError:
        return TopologyError(
            f"topology '{self.name}' has no state, so {so}: launch it with LocalRuntime(state=...) or "
            f"RayRuntime(state=...)"
        )

    @abstractmethod
    def _open(self, stream: str, source: str, behind: str | None) -> None: ...

    @abstractmethod
    def _send_all(self, stream: str, source: str, batches: list[pa.RecordBatch], offset: int | None) -> int:
        """Send batches that belong together, of which there is at least one; return the next offset."""

    @abstractmethod
    def _finish(self, stream: str, source: str | None) -> None: ...

    @abstractmethod
    def _read(self, sink: str, after: int | None, take_over: bool) -> Reading: ...

    @abstractmethod
    def _acknowledge(self, sink: str, number: int) -> None: ...

    def _sink(self, sink: str | None) -> str:
        sinks = self.topology.sinks
        sink = self.topology.main_sink if sink is None else sink
        if sink is None or sink not in sinks:
            raise TopologyError(
                f"topology '{self.topology.name}': name the sink to read, one of: {', '.join(sinks) or 'none'}"
            )
        return sink

    def _known_schema(self, stream: str) -> pa.Schema | None:
        """As `schema`, without asking again for what does not change."""
        known = self._known_schemas.get(stream) or self.schema(stream)
        if known is not None:
            self._known_schemas[stream] = known
        return known

    def _batches(self, stream: str, rows: Rows) -> list[pa.RecordBatch]:
        """Rows as batches. The order of all is checked first, so that no part goes in if another fails."""
        self.topology.require_input(stream)
        if isinstance(rows, pa.RecordBatch):
            return [rows]
        if not isinstance(rows, pa.Table):
            rows = arrow_table(f"stream '{stream}'", rows, self._known_schema(stream))
        batches = rows.to_batches()
        if len(batches) > 1:  # one goes in whole or not at all
            self._check_order(stream, rows)
        return batches or [pa.RecordBatch.from_pylist([], schema=rows.schema)]

    def _check_order(self, stream: str, rows: pa.Table) -> None:
        described = self.topology.require_input(stream)
        if described.event_time is not None and not described.disordered:
            _check_order(stream, rows, described.event_time)


MakeHandle: TypeAlias = "Callable[[RunningTopology], Handle]"
"""Makes the handle that programs hold from that of the topology: a join's from its topology's."""


class Runtime(ABC):
    """Where a topology runs."""

    @property
    def is_durable(self) -> bool:
        """Whether what it launches survives failures, because its state is kept in a store."""
        return False

    @abstractmethod
    def launch(
        self,
        topology: Topology,
        *,
        name: str | None = None,
        detached: bool = False,
        replace: bool = False,
        make_handle: MakeHandle | None = None,
    ) -> RunningTopology:
        """Start all tasks and return the handle.

        name:        the name under which other programs find the topology; None: that of the topology itself.
        detached:    let it outlive this program, until someone stops it.
        replace:     stop a topology that runs under this name, instead of raising an error.
        make_handle: what `attach` calls to make its handle; None: `attach` returns that of the topology.
        """


def _check_number(what: str, number: object, least: int) -> None:
    """Refuse what is not a whole number of at least `least`."""
    if type(number) is not int or number < least:
        raise InputError(f"{what} must be a whole number of at least {least}, not {number!r}")


def _check_order(stream: str, rows: pa.Table, event_time: str) -> None:
    """Refuse a table whose event time goes backwards; one without that column is refused elsewhere."""
    if rows.schema.names.count(event_time) != 1:
        return
    check_event_time(stream, rows.schema, event_time)
    found = first_backwards(*event_times(rows.column(event_time).combine_chunks()))
    if found is not None:
        row, before, after = found
        raise OutOfOrderError(
            f"stream '{stream}': '{event_time}' goes backwards at row {row} of the table ({before} is followed "
            f"by {after}): sort it by '{event_time}', declare how far its rows may be out of order "
            f"(out_of_order= of a join), or send them as separate sources"
        )
