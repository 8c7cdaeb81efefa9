"""Which tasks share a worker.

A component says where it belongs (`Component.beside`). Tasks beside the inputs form the *entry*, tasks beside the sinks
the *exit*; every other task is on its own. Tasks with different labels never share a worker, so everything here happens
once per set of labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from topology.graph.components import Bolt, Sink
from topology.graph.errors import TopologyError
from topology.graph.graph import Node, TaskName, Topology
from topology.graph.resources import labels_text

Group = list[TaskName]


@dataclass
class LabelClass:
    """The tasks whose nodes need the same labels: entry, exit, and those on their own."""

    entry: Group = field(default_factory=list)
    exit: Group = field(default_factory=list)
    alone: Group = field(default_factory=list)

    @property
    def groups(self) -> list[Group]:
        """The entry, every task on its own, the exit; without empty ones."""
        return [group for group in [self.entry, *([task] for task in self.alone), self.exit] if group]

    @property
    def tasks(self) -> int:
        """The number of tasks in all groups."""
        return len(self.entry) + len(self.exit) + len(self.alone)


def label_classes(topology: Topology) -> list[LabelClass]:
    """Divide the tasks by their labels, and those of equal labels by where they belong."""
    classes: dict[str, LabelClass] = {}
    for node in topology.nodes:
        found = classes.setdefault(labels_text(node.resources.labels), LabelClass())
        place = _place(topology, node)
        group = found.entry if place == "inputs" else found.exit if place == "sinks" else found.alone
        group += [(node.name, number) for number in range(node.parallelism)]
    return list(classes.values())


def default_groups(topology: Topology) -> list[Group]:
    """Entry, exit, and every other task on its own; entry and exit together if there is no other task."""
    classes = label_classes(topology)
    if any(found.alone for found in classes):
        return _in_order(topology, [group for found in classes for group in found.groups])
    return _in_order(topology, [found.entry + found.exit for found in classes])


def single_groups(topology: Topology) -> list[Group]:
    """Every task on its own."""
    return [[(node.name, number)] for node in topology.nodes for number in range(node.parallelism)]


def counted_groups(topology: Topology, count: int) -> list[Group]:
    """As many groups as asked for, or as there are tasks: entries and exits whole as long as possible."""
    classes = label_classes(topology)
    if len(classes) > count:
        raise TopologyError(
            f"topology '{topology.name}' needs {len(classes)} workers or more, not Workers({count}): tasks with "
            f"different labels cannot share one; raise the count or remove labels"
        )
    shares = _shares(classes, count)
    bolts = {node.name for node in topology.nodes if isinstance(node.component, Bolt)}
    divided = [
        group for found, workers in zip(classes, shares, strict=True) for group in _divide(found, workers, bolts)
    ]
    return _in_order(topology, divided)


def merged(topology: Topology, groups: list[Group], together: frozenset[str]) -> list[Group]:
    """The groups with those joined that have tasks of the components `together`; every other group stays."""
    apart = [group for group in groups if not any(component in together for component, _ in group)]
    joined = [task for group in groups if group not in apart for task in group]
    labels = {labels_text(topology.node(component).resources.labels) for component, _ in joined}
    if len(labels) > 1:
        raise TopologyError(
            f"topology '{topology.name}': {', '.join(sorted(together))} share a worker, because the state is kept "
            f"there, so they need the same labels, not {' and '.join(sorted(text or 'none' for text in labels))}"
        )
    return _in_order(topology, [*apart, joined] if joined else apart)


def _place(topology: Topology, node: Node) -> str | None:
    """Where a node belongs; a sink aside goes where fewer of its edges cross."""
    if not (isinstance(node.component, Sink) and node.component.aside):
        return node.component.beside
    feeders = [topology.node(name) for name in topology.producers(node.name)]
    near = {
        side: sum(
            feeder.parallelism
            for feeder in feeders
            if feeder.component.beside == side and feeder.resources.labels == node.resources.labels
        )
        for side in ("inputs", "sinks")
    }
    return "inputs" if near["inputs"] > near["sinks"] else "sinks"


def _shares(classes: list[LabelClass], count: int) -> list[int]:
    """How many workers each set of labels gets: one at least, then those with the most groups per worker first."""
    shares = [1] * len(classes)
    for _ in range(min(count, sum(found.tasks for found in classes)) - len(classes)):
        open_classes = [index for index, found in enumerate(classes) if shares[index] < found.tasks]
        load = {index: len(classes[index].groups) / shares[index] for index in open_classes}
        shares[max(open_classes, key=lambda index: (load[index], -index))] += 1
    return shares


def _divide(found: LabelClass, workers: int, bolts: set[str]) -> list[Group]:
    """Divide tasks of equal labels among `workers`. There are at least as many tasks as workers."""
    groups = found.groups
    if workers >= len(groups):
        while len(groups) < workers:
            largest = max(groups, key=len)
            leaving = next((task for task in reversed(largest) if task[0] in bolts), largest[-1])
            largest.remove(leaving)
            groups.append([leaving])
        return groups
    if workers == 1:
        return [[task for group in groups for task in group]]
    # Tasks on their own are dealt in turn: to the workers between entry and exit first, then to the exit, then to the
    # entry. So the numbers differ by one at most, and the tasks of one component go to different workers.
    divided = [[*found.entry], *([] for _ in range(workers - 2)), [*found.exit]]
    turns = [*range(1, workers), 0]
    for turn, task in enumerate(found.alone):
        divided[turns[turn % workers]].append(task)
    return divided


def _in_order(topology: Topology, groups: list[Group]) -> list[Group]:
    """Order the tasks of each group, and the groups by their first task, as the topology has them."""
    order = {node.name: place for place, node in enumerate(topology.nodes)}
    ordered = [sorted(group, key=lambda task: (order[task[0]], task[1])) for group in groups]
    return sorted(ordered, key=lambda group: (order[group[0][0]], group[0][1]))
