"""Puts a sequencer behind the inputs of a topology, so that it can keep a state."""

from __future__ import annotations

from dataclasses import replace

from topology.graph.components import DEFAULT_STREAM, Input, Origin, Sink, Task
from topology.graph.errors import NoSnapshotError
from topology.graph.graph import Edge, Node, TaskName, Topology
from topology.graph.groupings import Global
from topology.steps.sequencer import Sequencer
from topology.steps.ticks import TicksDue


def sequenced(topology: Topology) -> Topology:
    """Return the same topology with a sequencer between its inputs and all that read them."""
    inputs = tuple(topology.entries)
    name = "sequencer"
    while any(node.name == name for node in topology.nodes):
        name += "'"
    times = tuple((each, component.event_time) for each, component in topology.entries.items())
    asked = [node.component.tick_seconds for node in topology.nodes if node.component.tick_seconds is not None]
    edges = [Edge(each, DEFAULT_STREAM, name, Global()) for each in inputs]
    edges += [
        Edge(name, edge.producer, edge.consumer, edge.grouping) if edge.producer in inputs else edge
        for edge in topology.edges
    ]
    first = [node for node in topology.nodes if node.name in inputs]
    others = [node for node in topology.nodes if node.name not in inputs]
    return replace(
        topology,
        nodes=(*first, Node(name, Sequencer(times, min(asked, default=None)), 1), *others),
        edges=tuple(edges),
        identity=topology.identity or _described(topology),
        sequencer=name,
    )


def given_origins(topology: Topology, consumer: str) -> tuple[Origin, ...]:
    """The inputs of each task of `consumer` as they are without the sequencer."""
    is_entry = consumer == topology.sequencer or isinstance(topology.node(consumer).component, Input)
    if not topology.sequencer or is_entry:
        return topology.origins(consumer)
    producers = dict.fromkeys(
        edge.stream if edge.producer == topology.sequencer else edge.producer
        for edge in topology.edges
        if edge.consumer == consumer
    )
    channels = [(producer, task) for producer in producers for task in range(topology.node(producer).parallelism)]
    return tuple(
        Origin(component, task, index, topology.node(component).component.watermark_lag)
        for index, (component, task) in enumerate(channels)
    )


def ticks_due(topology: Topology, consumer: str) -> TicksDue | None:
    """Which ticks of the sequencer the tasks of `consumer` are due for; None if they ask for none."""
    asked = topology.node(consumer).component.tick_seconds
    every = topology.node(topology.sequencer).component.tick_seconds
    return None if asked is None or every is None else TicksDue(asked, every)


def tasks_with_snapshots(topology: Topology) -> list[TaskName] | None:
    """The tasks whose state a snapshot of the topology has; None if some task has no snapshots."""
    nodes = [
        node
        for node in topology.nodes
        if node.name != topology.sequencer and not isinstance(node.component, Input | Sink)
    ]
    if not all(node.component.snapshots for node in nodes):
        return None
    return [(topology.sequencer, 0), *((node.name, number) for node in nodes for number in range(node.parallelism))]


def check_snapshots(node: Node, task: object) -> None:
    """Refuse a component that says something else about snapshots than its task does."""
    has = isinstance(task, Task) and type(task).snapshot is not Task.snapshot
    if has and not node.component.snapshots:
        raise NoSnapshotError(
            f"component '{node.name}' does not say that its tasks have snapshots, but {type(task).__name__} has "
            f"snapshot(): write snapshots = True in {type(node.component).__name__}"
        )
    if node.component.snapshots and not has:
        raise NoSnapshotError(
            f"component '{node.name}' says snapshots = True, but {type(task).__name__} has no snapshot(): implement "
            f"snapshot() and restore()"
        )


def _described(topology: Topology) -> str:
    """What must not change from one life to the next: which tasks there are, and who feeds whom."""
    nodes = [f"{node.name} x{node.parallelism} [{type(node.component).__name__}]" for node in topology.nodes]
    edges = [f"{edge.producer}.{edge.stream} -> {edge.consumer} by {edge.shown_grouping}" for edge in topology.edges]
    return "; ".join([*nodes, *edges])
