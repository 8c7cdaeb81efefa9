"""The interface of engines, which lay the matching of a join out as processing elements.

A join's topology is always input -> gate -> router -> elements -> collector -> results. An engine supplies the
elements. All engines answer with the same matches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from operators.protocol.sides import LEFT
from operators.query.orderings import Ordering
from operators.query.predicate import Predicate
from operators.query.select_items import AggregateItem
from operators.query.windows import Window
from operators.routing.merge_policy import NEVER, MergePolicy
from topology import TopologyBuilder

ROUTER = "router"


@dataclass(frozen=True)
class ElementPlan:
    """The properties of a join from which an engine builds its elements.

    windows: the window of each side.
    batch:   the most rows of one step.
    router:  the name of the router that feeds the elements.
    counts:  `Limits.counting` may ask the elements for the number of each probe row's matches instead of the matches;
             only for engines that `can_count`.
    totals:  the aggregates that `Limits.counting` may ask the elements for instead of the matches, of rows of the side
             `own`; only for engines that `can_total`. The router then emits the values of their arguments.
    """

    predicate: Predicate
    ordering: Ordering
    windows: tuple[Window, Window]
    batch: int
    router: str = ROUTER
    counts: bool = False
    totals: tuple[AggregateItem, ...] = ()
    own: int = LEFT

    @property
    def ordered(self) -> bool:
        """Whether an element's matches must be in order of position within each probe row."""
        return self.ordering == "strict"

    @property
    def negated(self) -> tuple[bool, ...]:
        """`negated[d]`: dimension d is negated."""
        return tuple(dimension.negated for dimension in self.predicate.dimensions)


class Engine(ABC):
    """A frozen description of an engine and its settings."""

    @property
    def gate(self) -> str:
        """The paper's name for the element that merges the sources into one order."""
        return "gate"

    @property
    def collector(self) -> str:
        """The paper's name for the element that brings the answers together."""
        return "collector"

    @property
    def split_fields(self) -> bool:
        """Whether the router also emits each dimension as a stream of its own."""
        return False

    @property
    def can_count(self) -> bool:
        """Whether the elements can answer with counts (`ElementPlan.counts`), which the collector adds up."""
        return False

    def can_total(self, predicate: Predicate) -> bool:
        """Whether the elements can answer with aggregates over the matches (`ElementPlan.totals`)."""
        return False

    @property
    @abstractmethod
    def counted(self) -> Mapping[str, str]:
        """The setting that says how many elements of a kind there are, by the name of their component.

        Where each element is a component of its own, the name is what theirs have in common.
        """

    def merge_policy(self, window: Window) -> MergePolicy:
        """When rows of a side leave the mutable part: never, unless the engine has an immutable part.

        Called when the topology is built; raises a JoinError for settings that the window does not allow.
        """
        return NEVER

    @abstractmethod
    def add_elements(self, builder: TopologyBuilder, plan: ElementPlan) -> Sequence[str]:
        """Add the processing elements, fed by the router; return the names of those that answer probes."""
