"""A topology that a test drives: rows in, time as the test says, and what every component emitted."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from random import Random
from types import TracebackType
from typing import Any, Self, TypeAlias

import pyarrow as pa

from topology import DEFAULT_STREAM, Rows, SteppedTopology, Topology, TopologyError, UnknownComponentError, arrow_table

Inputs: TypeAlias = "Mapping[str, Rows | Mapping[str, Rows]]"
"""For each input its rows, or a mapping of source to rows. A list of batches is sent batch by batch."""


class Simulation:
    """A topology in one thread, whose tasks take turns in an order that the seed decides; nothing runs by itself.

    Use it in a `with` block. Whatever a test sends is worked off by `settle`, `advance` and `finish`.

    >>> import interlace as il
    >>> from interlace.testing import Simulation
    >>> builder = il.TopologyBuilder()
    >>> _ = builder.input("in")
    >>> _ = builder.bolt("count", il.bolt(lambda rows: {"n": rows.num_rows})).shuffle_grouping("in")
    >>> _ = builder.sink().global_grouping("count")
    >>> with Simulation(builder.build()) as simulation:
    ...     _ = simulation.send("in", {"x": [1, 2]})
    ...     simulation.settle()
    ...     simulation.emitted("count").to_pydict()
    {'n': [2]}
    """

    def __init__(self, topology: Topology | Any, seed: int = 0) -> None:
        described = topology.topology() if hasattr(topology, "topology") else topology
        if not isinstance(described, Topology):
            raise TopologyError(f"a simulation runs a topology or a join, not {type(topology).__name__}")
        self.topology = described
        self.seed = seed
        self._chance = Random(seed)
        self._stepped = SteppedTopology(described, self._chance)
        self._taken: dict[str, int] = {}

    def open(self, stream: str, *sources: str) -> None:
        """Announce sources, so that event time waits for them."""
        for source in sources:
            self._stepped.open(stream, source)

    def send(self, stream: str, rows: Rows, source: str | None = None) -> int:
        """Send the next rows of a source; nothing happens with them yet. Return its next offset.

        Rows that do not fit the stream are refused with the errors of `running.send`.
        """
        following = 0
        for batch in _batches(stream, rows):
            following = self._stepped.send(stream, source or stream, batch)
        return following

    def settle(self) -> None:
        """Let the tasks work until nobody has anything to do; the seed decides who is next."""
        self._stepped.settle()
        self._stepped.check_invariants()

    def step(self) -> bool:
        """Let one task handle one message; return whether there was one."""
        return self._stepped.step()

    def advance(self, seconds: float) -> None:
        """Let everybody finish, and then so many seconds pass, with the ticks in them; silent sources fall idle."""
        self._stepped.advance(seconds)

    @property
    def now(self) -> float:
        """The seconds that have passed."""
        return self._stepped.now

    def restart(self, component: str) -> None:
        """Replace the tasks of a component by new ones that go on from their snapshots, as after a failure.

        Whatever a task remembers without its snapshot is lost.
        """
        if component not in {node.name for node in self.topology.nodes}:
            self._unknown(component)
        self._stepped.restart(component)

    @property
    def restorable(self) -> list[str]:
        """The components that keep snapshots, so that a restart must change nothing."""
        return self._stepped.restorable

    def end(self, stream: str, source: str | None = None) -> None:
        """End a source, or a stream; nothing happens yet."""
        self._stepped.finish(stream, source)

    def finish(self, stream: str | None = None, source: str | None = None) -> None:
        """End a source, a stream, or everything, and settle."""
        for name in self.topology.inputs if stream is None else [stream]:
            self.end(name, source)
        self.settle()

    def emitted(self, name: str) -> pa.Table:
        """Return all rows that a component has emitted, in the order of the run.

        name: a component or a part, for its default stream, or `component.stream`. Of a sink, the rows that reached it.
        """
        tables = self._tables()
        if name not in tables:
            self._unknown(name)
        return tables[name]

    def new(self, name: str) -> pa.Table:
        """As `emitted`, but only what has come since the last call with this name."""
        table = self.emitted(name)
        seen = self._taken.get(name, 0)
        self._taken[name] = table.num_rows
        return table.slice(seen)

    def everything(self) -> dict[str, pa.Table]:
        """Return what every component has emitted, by the names that `emitted` takes."""
        return self._tables()

    def close(self) -> None:
        """End the simulation."""
        self._stepped.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
        if error is not None and hasattr(error, "add_note"):
            error.add_note(f"interlace.testing: this schedule comes again with seed={self.seed}")

    def _tables(self) -> dict[str, pa.Table]:
        batches: dict[tuple[str, str], list[pa.RecordBatch]] = {}
        streams: dict[str, list[tuple[str, str]]] = {}
        for node in self.topology.nodes:
            for stream in node.component.outputs or [DEFAULT_STREAM]:
                streams[_shown(node.name, stream)] = [(node.name, stream)]
        for part in self.topology.parts:
            for stream, feeding in part.outputs:
                streams[_shown("/".join(part.path), stream)] = list(feeding)
        for component, stream, rows in self._stepped.emitted:
            is_sink = component in self.topology.sinks  # its rows have the names of the streams that they come from
            batches.setdefault((component, DEFAULT_STREAM if is_sink else stream), []).append(rows)
        return {
            shown: _table([rows for each in members for rows in batches.get(each, [])], self._schema(*members[0]))
            for shown, members in streams.items()
            if members
        }

    def _schema(self, component: str, stream: str) -> pa.Schema | None:
        return dict(self.topology.node(component).component.outputs).get(stream)

    def _unknown(self, name: str) -> None:
        known = ", ".join(f"'{each}'" for each in self._tables())
        raise UnknownComponentError(f"topology '{self.topology.name}' has no '{name}'; it has: {known}")


def run(topology: Topology | Any, inputs: Inputs, *, seed: int = 0, faults: float = 0.0) -> dict[str, pa.Table]:
    """Run a topology, or a join, over some rows to its end; return what every component emitted, by name.

    inputs: for each input its rows, or a mapping of source to rows. A list of batches, or of dicts of columns, is sent
            one by one; sources are announced first, and the seed decides in which order their batches come.
    seed:   decides about the order of everything that has no order: the same seed, the same run.
    faults: how likely it is, after each batch, that a component which keeps snapshots is restarted; the seed decides
            which. 1: every time. A topology must give the same rows with faults as without.

    The names are those of components and parts, for their default streams, and `component.stream` for others. The rows
    of a sink are those that reached it. A failure of a task is raised as a `TaskError`.

    >>> import interlace as il
    >>> from interlace.testing import run
    >>> join = il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(10))
    >>> run(join, {"R": {"x": [1, 5]}, "S": {"x": [3]}})["results"].to_pydict()
    {'R.x': [1], 'S.x': [3]}
    """
    if not isinstance(faults, int | float) or not 0 <= faults <= 1:
        raise TopologyError(f"faults must be a share between 0 and 1, not {faults!r}")
    with Simulation(topology, seed) as simulation:
        unknown = [name for name in inputs if name not in simulation.topology.inputs]
        if unknown:
            simulation.topology.require_input(unknown[0])
        chance, fate = Random(f"inputs {seed}"), Random(f"faults {seed}")
        left: dict[tuple[str, str], deque[pa.RecordBatch]] = {}
        for stream in simulation.topology.inputs:
            for source, rows in _sources(stream, inputs.get(stream)).items():
                simulation.open(stream, source)
                left[stream, source] = deque(_batches(stream, rows))
        while left:
            stream, source = chance.choice(sorted(left))
            if left[stream, source]:
                simulation.send(stream, left[stream, source].popleft(), source)
            else:
                simulation.end(stream, source)
                del left[stream, source]
            for _ in range(chance.randrange(4)):
                simulation.step()
            if fate.random() < faults and simulation.restorable:
                simulation.restart(fate.choice(simulation.restorable))
        simulation.finish()
        return simulation.everything()


def _sources(stream: str, rows: Any) -> dict[str, Any]:
    """The rows of each source; where only rows are given, they are those of a source named after the stream."""
    if rows is None:
        return {}
    if isinstance(rows, Mapping) and rows and all(_are_rows(each) for each in rows.values()):
        return dict(rows)
    return {stream: rows}


def _are_rows(value: object) -> bool:
    """Whether something is the rows of a source, and not a column."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return all(_are_rows(each) for each in value) if value else False
    return isinstance(value, Mapping | pa.Table | pa.RecordBatch) or hasattr(value, "columns")


def _batches(stream: str, rows: Rows) -> list[pa.RecordBatch]:
    where = f"stream '{stream}'"
    if isinstance(rows, list | tuple) and rows and all(_is_batch(each) for each in rows):
        return [batch for each in rows for batch in _batches(stream, each)]
    return arrow_table(where, rows).combine_chunks().to_batches()


def _is_batch(value: object) -> bool:
    """Whether an item of a list is a batch of rows, and not a row."""
    if isinstance(value, Mapping):
        return bool(value) and all(isinstance(column, list | tuple | pa.Array) for column in value.values())
    return isinstance(value, pa.Table | pa.RecordBatch) or hasattr(value, "columns")


def _shown(component: str, stream: str) -> str:
    return component if stream == DEFAULT_STREAM else f"{component}.{stream}"


def _table(batches: list[pa.RecordBatch], schema: pa.Schema | None) -> pa.Table:
    if not batches:
        return pa.table({}) if schema is None else schema.empty_table()
    return pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="permissive")
