"""What faults have hit: which kind of task was at work, in which phase of the topology, for each kind of fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from topology.graph.components import Input, Sink
from topology.graph.graph import Node
from topology.simulated.life import SimulatedLife

KINDS = ("input", "gate", "router", "element", "collector", "sink", "journal")
PHASES = ("accept", "order", "answer", "release", "replay", "snapshot")
"""accept: rows have come in and are not durable. order: the gate has rows to put in order. answer: router or elements
have rows to deal with. release: results are under way or unread. replay: what was done before a failure is done again.
snapshot: a segment begins, with all that everything after can start from."""

PHASE_OF = {"gate": "order", "router": "answer", "element": "answer", "collector": "release", "sink": "release"}

Cell = tuple[str, str, str]
"""Kind of task, phase, fault."""


def kind_of(node: Node) -> str:
    """The kind of the tasks of a component."""
    if isinstance(node.component, Input):
        return "input"
    if isinstance(node.component, Sink):
        return "sink"
    return {"Gate": "gate", "Router": "router", "Collector": "collector"}.get(type(node.component).__name__, "element")


def at_work(life: SimulatedLife, accepting: bool, unread: bool) -> Iterator[tuple[str, str]]:
    """The kinds of tasks that have something to do, each with every phase that the topology is in.

    accepting: rows have been taken whose senders have no answer. unread: results wait for their reader.
    """
    kinds = {
        kind_of(life.topology.node(name))
        for worker in life.workers
        if worker.runs
        for (name, _), driven in worker.group.driven.items()
        if driven.has_work
    }
    journal = life.journal.committer.has_work
    phases = {PHASE_OF[kind] for kind in kinds if kind in PHASE_OF} if life.is_open else {"replay"}
    phases |= {"accept"} if accepting else set()
    phases |= {"release"} if unread else set()
    phases |= {"snapshot"} if life.is_starting_segment else set()
    for kind in sorted(kinds | ({"journal"} if journal else set())):
        for phase in PHASES:
            if phase in phases:
                yield kind, phase


def empty(cells: Counter[Cell], faults: tuple[str, ...]) -> list[Cell]:
    """The cells that nothing has hit."""
    return [
        (kind, phase, fault) for kind in KINDS for phase in PHASES for fault in faults if not cells[kind, phase, fault]
    ]


def drawn(cells: Counter[Cell], faults: tuple[str, ...]) -> str:
    """A table of how many faults hit each kind of task in each phase, and of how many kinds these were."""
    width = 16
    lines = ["".join(["".ljust(11), *(phase.rjust(width) for phase in PHASES)])]
    for kind in KINDS:
        found = []
        for phase in PHASES:
            of_cell = [cells[kind, phase, fault] for fault in faults]
            found.append(f"{sum(of_cell):,} ({sum(map(bool, of_cell))}/{len(faults)})".rjust(width))
        lines.append("".join([kind.ljust(11), *found]))
    return "\n".join(lines)
