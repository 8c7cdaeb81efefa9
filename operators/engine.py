"""Engines: how the matching of a join is laid out as processing elements.

A join's topology is always input -> gate -> router -> elements -> collector -> results. An engine supplies the
elements; whatever it does, they answer with the same matches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from operators.merge_policy import MergePolicy
from operators.predicate import Predicate
from operators.windows import Window
from topology import TopologyBuilder

ROUTER = "router"


@dataclass(frozen=True)
class ElementPlan:
    """What an engine needs to know of the join: its predicate, and whether matches must be in order of position."""

    predicate: Predicate
    ordered: bool

    @property
    def negated(self) -> tuple[bool, ...]:
        """Which dimensions are."""
        return tuple(dimension.negated for dimension in self.predicate.dimensions)


class Engine(ABC):
    """A frozen description of an engine and its settings."""

    @property
    def split_fields(self) -> bool:
        """Whether the router must send each dimension as a stream of its own."""
        return False

    @abstractmethod
    def merge_policy(self, window: Window) -> MergePolicy:
        """When rows of a side leave the mutable part."""

    @abstractmethod
    def add_elements(self, builder: TopologyBuilder, plan: ElementPlan) -> Sequence[str]:
        """Add the processing elements, fed by the router; return those that answer probes."""
