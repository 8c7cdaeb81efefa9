"""Gives components of a topology another number of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from topology.graph.errors import TopologyError, UnknownComponentError
from topology.graph.graph import Node, Topology


def rescaled(topology: Topology, counts: Mapping[str, int]) -> Topology:
    """Return the topology with other numbers of tasks, by component, with _ for -; refuses what would mean another.

    Worked by hand: `rescaled(topology, {"word_count": 4})` gives four tasks to the component "word-count".
    """
    wanted = {component_named(name, [node.name for node in topology.nodes]): count for name, count in counts.items()}
    return replace(topology, nodes=tuple(_with_tasks(node, wanted.get(node.name)) for node in topology.nodes))


def component_named(name: str, components: list[str]) -> str:
    """The component that a keyword names."""
    for component in components:
        if component == name or component.replace("-", "_") == name:
            return component
    raise UnknownComponentError(f"there is no component '{name}' to rebalance; there are: {', '.join(components)}")


def check_count(component: str, count: object) -> None:
    """Refuse what is no number of tasks."""
    if type(count) is not int or count < 1:
        raise TopologyError(f"component '{component}': a number of tasks is a whole number from 1, not {count!r}")


def _with_tasks(node: Node, count: int | None) -> Node:
    if count is None:
        return node
    check_count(node.name, count)
    if not node.component.rescales:
        raise TopologyError(
            f"component '{node.name}' stays at {node.parallelism} task(s): it does not say that another number leads "
            f"to the same results (rescales = True in its class)"
        )
    return replace(node, parallelism=count)
