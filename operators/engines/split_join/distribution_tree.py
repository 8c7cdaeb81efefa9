"""The distribution tree: brings every step to every join core, each relay serving a few (SplitJoin, section 4.3).

In: limits and rows of both sides from the router. Out: the same, unchanged and in the same order. Both streams take
the same path, so all cores see them in the same order.

Each relay of the tree is a component of its own, and so is each core. The edges of the topology are then the edges of
the tree, and a message, including a punctuation, goes only from a relay to those that it serves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from operators.engines.shared.engine import ROUTER
from operators.protocol.stream_ids import outputs_of
from operators.protocol.streams import STEP
from topology import Bolt, PassOn, Task, TaskContext, TopologyBuilder


@dataclass(frozen=True)
class Distributor(Bolt):
    """A relay: passes every message on."""

    serves: int

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(STEP)

    @property
    def note(self) -> str:
        return f"serves {self.serves}"

    def build(self, context: TaskContext) -> Task:
        return PassOn()


def tree_levels(leaves: int, fanout: int) -> list[int]:
    """The number of inner nodes on each level, root first: as few levels as the fan-out allows.

    A level is added only when the fan-out of all nodes is used up; the nodes of a level share the next one evenly.

        fanout 4:   1..4 leaves [1]   5..16 leaves [1, 2..4]   17..64 leaves [1, 2..4, 5..16]
    """
    levels = [-(-leaves // fanout)]
    while levels[0] > 1:
        levels.insert(0, -(-levels[0] // fanout))
    return levels


def parent(child: int, children: int, parents: int) -> int:
    """Which of a level's `parents` nodes serves node number `child` of the next level's `children` nodes.

    Neighbours share a parent, and two parents' numbers of children differ by one at most.
    """
    return child * parents // children


def node_name(kind: str, level: int, number: int) -> str:
    """The name of a tree's node: kind-1 for the root, kind-level-number for the others."""
    return f"{kind}-1" if level == 0 else f"{kind}-{level + 1}-{number}"


def add_distribution_tree(builder: TopologyBuilder, cores: int, fanout: int) -> Sequence[str]:
    """Add the relays, fed by the router; return for each core the relay that serves it."""
    levels = tree_levels(cores, fanout)
    for level, nodes in enumerate(levels):
        below = levels[level + 1] if level + 1 < len(levels) else cores
        served = [parent(child, below, nodes) for child in range(below)]
        for number in range(nodes):
            name = node_name("distribution", level, number)
            subscription = builder.bolt(name, Distributor(served.count(number)))
            above = (
                ROUTER if level == 0 else node_name("distribution", level - 1, parent(number, nodes, levels[level - 1]))
            )
            for stream in STEP:
                subscription.global_grouping(above, stream.name)
    last = len(levels) - 1
    return [node_name("distribution", last, parent(core, cores, levels[last])) for core in range(cores)]
