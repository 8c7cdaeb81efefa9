"""The share of a topology that a process with some of its tasks needs.

A process that unpickles a component imports its code, with all that this needs. So a share holds the components of its
own tasks only; the others are stand-ins. The graph is whole: a process must know whom its tasks feed, and who feeds
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from topology.graph.components import Component, FetchedInput, Input, Sink, Task, TaskContext
from topology.graph.graph import TaskName, Topology
from topology.graph.messages import Time


@dataclass(frozen=True)
class Elsewhere(Component):
    """Stands for a component whose tasks run in other processes; `snapshots` and `ticks`: as the component says."""

    snapshots: bool = False

    lag: Time | None = None
    ticks: float | None = None

    @property
    def watermark_lag(self) -> Time | None:
        return self.lag

    @property
    def tick_seconds(self) -> float | None:
        return self.ticks

    def build(self, context: TaskContext) -> Task:
        raise AssertionError(f"the tasks of '{context.component}' run in other processes")


def share(topology: Topology, tasks: Iterable[TaskName]) -> Topology:
    """Return the topology with the components of these tasks alone. Cost: O(components)."""
    here = {component for component, _ in tasks}
    return replace(
        topology,
        nodes=tuple(
            node if node.name in here else replace(node, component=_stand_in(node.component)) for node in topology.nodes
        ),
    )


def _stand_in(component: Component) -> Component:
    """Inputs and sinks remain what they are, because servers list them by name, and tasks merge inputs' watermarks."""
    if isinstance(component, Input):
        kind = FetchedInput if isinstance(component, FetchedInput) else Input
        return kind(None, component.event_time, disordered=component.disordered, out_of_order=component.out_of_order)
    if isinstance(component, Sink):
        return Sink(component.aside)
    return Elsewhere(component.snapshots, component.watermark_lag, component.tick_seconds)
