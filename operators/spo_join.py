"""SPO-Join as an engine: a mutable part for new rows, an immutable part of PO-Join segments for the rest.

Paper: "SPO-Join: Efficient Stream Inequality Join", Aslam, Beedkar, Simonini. The elements are those of its figure 3.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from operators.engine import ROUTER, ElementPlan, Engine
from operators.errors import JoinError
from operators.logical_and_element import LogicalAndElement
from operators.merge_policy import MergePolicy
from operators.mutable_element import MutableElement
from operators.permutation_element import PermutationElement
from operators.po_join_element import POJoinElement
from operators.predicate_element import PredicateElement
from operators.windows import Window
from topology import TopologyBuilder

Mutable = Literal["fused", "decomposed"]
"""fused: the mutable part in one element. decomposed: a predicate element per dimension, and logical-AND elements."""


@dataclass(frozen=True)
class SPOJoin(Engine):
    """The engine of SPO-Join.

    elements:         PO-Join elements, among which segments are dealt round robin; None: one per core, at most 4.
    mutable:          how the mutable part is laid out; fused is the cheaper one on one machine (docs/decisions.md).
    logical_elements: logical-AND elements of the decomposed plan.
    permutations:     permutation elements.
    merge_interval:   rows of one segment; None: the slide, or its sub-interval where that is large.
    """

    elements: int | None = None
    mutable: Mutable = "fused"
    logical_elements: int = 2
    permutations: int = 1
    merge_interval: int | None = None

    def __post_init__(self) -> None:
        for name in ("elements", "logical_elements", "permutations", "merge_interval"):
            value = getattr(self, name)
            optional = name in ("elements", "merge_interval")
            if value is None and optional:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise JoinError(f"SPOJoin: {name} must be a whole number of 1 or more, not {value!r}")
        if self.mutable not in ("fused", "decomposed"):
            raise JoinError(f"SPOJoin: mutable must be 'fused' or 'decomposed', not {self.mutable!r}")

    @property
    def split_fields(self) -> bool:
        return self.mutable == "decomposed"

    def merge_policy(self, window: Window) -> MergePolicy:
        return MergePolicy.of(window, self.merge_interval, self._elements)

    def add_elements(self, builder: TopologyBuilder, plan: ElementPlan) -> Sequence[str]:
        dimensions = len(plan.negated)
        if self.mutable == "fused":
            mutable = ["mutable"]
            sorters = ["mutable"]
            subscription = builder.bolt("mutable", MutableElement(plan.negated, plan.ordered, self.permutations))
            for stream in ("limits", "probes.left", "probes.right", "merge"):
                subscription.global_grouping(ROUTER, stream)
        else:
            mutable = ["logical-and"]
            sorters = self._add_predicates(builder, plan)
        permutation = builder.bolt("permutation", PermutationElement(dimensions, self._elements), self.permutations)
        for sorter in sorters:
            permutation.direct_grouping(sorter, "runs")
        immutable = builder.bolt("po-join", POJoinElement(plan.negated, plan.ordered, ROUTER), self._elements)
        for stream in ("limits", "probes.left", "probes.right", "merge"):
            immutable.all_grouping(ROUTER, stream)
        immutable.direct_grouping("permutation", "segments")
        return [*mutable, "po-join"]

    @property
    def _elements(self) -> int:
        return self.elements or min(4, os.cpu_count() or 1)

    def _add_predicates(self, builder: TopologyBuilder, plan: ElementPlan) -> list[str]:
        names = []
        for d, dimension in enumerate(plan.predicate.dimensions):
            name = f"predicate-{d}"
            element = PredicateElement(d, str(dimension), plan.negated[d], self.logical_elements, self.permutations)
            subscription = builder.bolt(name, element)
            for stream in ("limits", f"probes.left.{d}", f"probes.right.{d}", "merge"):
                subscription.global_grouping(ROUTER, stream)
            names.append(name)
        logical = builder.bolt("logical-and", LogicalAndElement(plan.negated, plan.ordered), self.logical_elements)
        logical.all_grouping(names[0], "limits")
        for name in names:
            logical.all_grouping(name, "blocks").direct_grouping(name, "ranges")
        return names
