"""Puts a sequencer behind the inputs of a topology, so that it can keep a state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from topology.graph.components import DEFAULT_STREAM, Input, Origin, Sink, Task
from topology.graph.errors import NoSnapshotError
from topology.graph.graph import Edge, Node, TaskName, Topology
from topology.graph.groupings import Global
from topology.steps.sequencer import Sequencer
from topology.steps.ticks import TicksDue


def sequenced(topology: Topology) -> Topology:
    """Return the same topology with a sequencer between its inputs and all that read them.

    The gates of joins that are parts of it take its steps as all tasks do: what they decide follows from these.
    """
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
    followed = _followed(topology)
    others = [
        replace(node, component=node.component.durable(), follows=followed.get(node.name, ""))
        for node in topology.nodes
        if node.name not in inputs
    ]
    topology = replace(topology, nodes=(*first, *others))
    return replace(
        topology,
        nodes=(*first, Node(name, Sequencer(times, min(asked, default=None)), 1), *others),
        edges=tuple(edges),
        identity=topology.identity or described(topology),
        sequencer=name,
    )


def given_origins(topology: Topology, consumer: str) -> Mapping[TaskName, Origin]:
    """The inputs of each task of `consumer` as they are without the sequencer, by the task that each comes from."""
    is_entry = consumer == topology.sequencer or isinstance(topology.node(consumer).component, Input)
    if not topology.sequencer or is_entry:
        feeders = topology.feeders(consumer) or (("", 0),)
        return dict(zip(feeders, topology.origins(consumer), strict=False))  # a spout has none
    producers = dict.fromkeys(
        edge.stream if edge.producer == topology.sequencer else edge.producer
        for edge in topology.edges
        if edge.consumer == consumer
    )
    feeders = tuple((producer, task) for producer in producers for task in range(topology.node(producer).parallelism))
    return dict(zip(feeders, topology.seen_by(consumer, feeders), strict=True))


def ticks_due(topology: Topology, consumer: str) -> TicksDue | None:
    """Which ticks of the sequencer the tasks of `consumer` are due for; None if they ask for none."""
    asked = topology.node(consumer).component.tick_seconds
    every = topology.node(topology.sequencer).component.tick_seconds
    return None if asked is None or every is None else TicksDue(asked, every)


def kept_as(topology: Topology, task: TaskName) -> TaskName:
    """The name under which a task keeps its snapshots: engines call a join's gate by names of their own."""
    node = topology.node(task[0])
    is_gate = any(other.follows == node.name for other in topology.nodes)
    return ("/".join((*node.part, "gate")), task[1]) if is_gate else task


def left_part(topology: Topology, name: str) -> TaskName | None:
    """The name under which the last component of a join keeps what has left it; None: it is not the last of one."""
    node = topology.node(name)
    is_last = node.follows and all(
        topology.node(edge.consumer).follows != node.follows for edge in topology.edges if edge.producer == name
    )
    return ("/".join(node.part), 0) if is_last else None


def tasks_with_snapshots(topology: Topology) -> list[TaskName] | None:
    """The tasks whose state a snapshot of the topology has; None if some task has no snapshots."""
    nodes = [
        node
        for node in topology.nodes
        if not (node.name == topology.sequencer or isinstance(node.component, Input | Sink) or node.follows)
    ]
    if not all(node.component.snapshots for node in nodes):
        return None
    own = [kept_as(topology, (node.name, number)) for node in nodes for number in range(node.parallelism)]
    joins = dict.fromkeys(left_part(topology, node.name) for node in topology.nodes)
    return [(topology.sequencer, 0), *own, *(name for name in joins if name is not None)]


def check_snapshots(node: Node, task: object) -> None:
    """Refuse a component that says something else about snapshots than its task does."""
    has = isinstance(task, Task) and type(task).snapshot is not Task.snapshot
    if has and not node.component.snapshots and not node.component.decides:  # a gate's windows may forbid it
        raise NoSnapshotError(
            f"component '{node.name}' does not say that its tasks have snapshots, but {type(task).__name__} has "
            f"snapshot(): write snapshots = True in {type(node.component).__name__}"
        )
    if node.component.snapshots and not has:
        raise NoSnapshotError(
            f"component '{node.name}' says snapshots = True, but {type(task).__name__} has no snapshot(): implement "
            f"snapshot() and restore()"
        )


def _followed(topology: Topology) -> dict[str, str]:
    """The components that follow a join's gate, each with that gate: those behind it in the same part."""
    followed: dict[str, str] = {}
    for node in topology.nodes:  # producers come before their consumers
        if not node.component.decides:
            before = [name for name in topology.producers(node.name) if topology.node(name).part == node.part]
            gates = [name if topology.node(name).component.decides else followed.get(name, "") for name in before]
            gate = next(filter(None, gates), None)
            if gate is not None:
                followed[node.name] = gate
    return followed


def described(topology: Topology) -> str:
    """What must not change from one life to the next: which tasks there are, who feeds whom, and what joins mean.

    How a join computes its results may change. The same for a topology with a sequencer as for the one it was made of.
    """
    shown = {node.name: kept_as(topology, (node.name, 0))[0] for node in topology.nodes}
    shown |= {node.name: "/".join(node.part) for node in topology.nodes if node.follows}
    nodes = [
        f"{shown[node.name]} x{node.parallelism} [{type(node.component).__name__}]"
        for node in topology.nodes
        if not node.follows and node.name != topology.sequencer
    ]
    given = [
        replace(edge, producer=edge.stream, stream=DEFAULT_STREAM) if edge.producer == topology.sequencer else edge
        for edge in topology.edges
        if edge.consumer != topology.sequencer
    ]
    edges = [
        f"{shown[edge.producer]}.{edge.stream} -> {shown[edge.consumer]} by {edge.shown_grouping}"
        for edge in given
        if not topology.node(edge.consumer).follows
    ]
    parts = [f"{part.name}: {part.identity}" for part in topology.parts if part.identity]
    if parts:  # how many components a join has may change the order of the others
        return "; ".join([*sorted(nodes), *sorted(edges), *parts])
    return "; ".join([*nodes, *edges])
