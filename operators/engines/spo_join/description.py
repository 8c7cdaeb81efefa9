"""SPO-Join as an engine: a mutable part for new rows, an immutable part of PO-Join segments for the rest.

Paper: "SPO-Join: Efficient Stream Inequality Join", Aslam, Beedkar, Simonini. The elements are those of its figure 3.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from operators.engines.shared.engine import ROUTER, ElementPlan, Engine
from operators.engines.shared.setting_checks import check_choice, check_number
from operators.engines.spo_join.logical_and_element import Intersection, LogicalAndElement
from operators.engines.spo_join.mutable_element import MutableElement
from operators.engines.spo_join.permutation_element import PermutationElement
from operators.engines.spo_join.po_join_element import Immutable, POJoinElement, State
from operators.engines.spo_join.predicate_element import PredicateElement
from operators.engines.spo_join.state_cache import StateCache
from operators.engines.spo_join.streams import BLOCKS, RANGES, RUNS, SEGMENTS, STATE
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.streams import LIMITS, MERGE, STEP, probes_of
from operators.query.errors import JoinError
from operators.query.windows import Window
from operators.routing.merge_policy import MergePolicy, Merging
from topology import TopologyBuilder

Mutable = Literal["fused", "decomposed"]
"""fused: the mutable part in one element. decomposed: a predicate element per dimension, and logical-AND elements."""

_CHOICES = {
    "mutable": Mutable,
    "intersection": Intersection,
    "merging": Merging,
    "state": State,
    "immutable": Immutable,
}


@dataclass(frozen=True)
class SPOJoin(Engine):
    """The engine of SPO-Join.

    elements:         PO-Join elements, among which segments are dealt round robin; None: one per core, at most 4.
    mutable:          how the mutable part is laid out; fused is the cheaper one on one machine (docs/decisions.md).
    logical_elements: logical-AND elements of the decomposed plan.
    intersection:     how they intersect; see `Intersection`. Other than "permutation" for comparison only.
    permutations:     permutation elements.
    merge_interval:   rows of one segment; None: as `merging` says.
    merging:          when a segment is due; see `Merging`.
    state:            how PO-Join elements learn what has expired; see `State`. No result depends on it.
    immutable:        what a segment is; see `Immutable`. Other than "po-join" for comparison only.
    probe_threads:    threads that share the segments of one PO-Join element for each probe. Elements are the better way
                      to use several cores; threads are for one element, as on Ray, that has a machine to itself.

    Exactness depends on none of these: every probe row carries the positions it may meet.
    """

    elements: int | None = None
    mutable: Mutable = "fused"
    logical_elements: int = 2
    permutations: int = 1
    merge_interval: int | None = None
    merging: Merging = "adaptive"
    state: State = "round robin"
    immutable: Immutable = "po-join"
    probe_threads: int = 1
    intersection: Intersection = "permutation"

    def __post_init__(self) -> None:
        for setting in ("elements", "merge_interval"):
            check_number("SPOJoin", setting, getattr(self, setting), optional=True)
        for setting in ("logical_elements", "permutations", "probe_threads"):
            check_number("SPOJoin", setting, getattr(self, setting))
        for setting, choices in _CHOICES.items():
            check_choice("SPOJoin", setting, getattr(self, setting), choices)
        if self.merge_interval is not None and self.merging != "adaptive":
            raise JoinError(f"SPOJoin: merging={self.merging!r} fixes the interval: leave out merge_interval")
        if self.intersection != "permutation" and self.mutable != "decomposed":
            raise JoinError(
                f"SPOJoin: intersection={self.intersection!r} is of the decomposed plan: add mutable='decomposed'"
            )

    @property
    def split_fields(self) -> bool:
        return self.mutable == "decomposed"

    @property
    def can_count(self) -> bool:
        """The decomposed plan sends ranges of ranks about, which is for comparison only, and enumerates."""
        return self.mutable == "fused"

    def merge_policy(self, window: Window) -> MergePolicy:
        return MergePolicy.of(window, self.merge_interval, self._elements, self.merging)

    def add_elements(self, builder: TopologyBuilder, plan: ElementPlan) -> Sequence[str]:
        dimensions = len(plan.negated)
        if self.mutable == "fused":
            mutable = ["mutable"]
            sorters = ["mutable"]
            described = MutableElement(plan.negated, plan.ordered, self.permutations, plan.counts)
            subscription = builder.bolt("mutable", described)
            for stream in (*STEP, MERGE):
                subscription.global_grouping(ROUTER, stream.name)
        else:
            mutable = ["logical-and"]
            sorters = self._add_predicates(builder, plan)
        permutes = self.immutable == "po-join"
        merging = "permutation" if permutes else "merge"
        permutation = PermutationElement(dimensions, self._elements, permutes)
        subscription = builder.bolt(merging, permutation, self.permutations)
        for sorter in sorters:
            subscription.direct_grouping(sorter, RUNS.name)
        element = POJoinElement(
            plan.negated, plan.ordered, plan.router, self.immutable, self.state, self.probe_threads, plan.counts
        )
        immutable = builder.bolt(self.immutable, element, self._elements)
        for stream in (*STEP, MERGE):
            immutable.all_grouping(ROUTER, stream.name)
        immutable.direct_grouping(merging, SEGMENTS.name)
        if self.state == "shared cache":
            builder.bolt("state-cache", StateCache()).global_grouping(ROUTER, LIMITS.name)
            immutable.all_grouping("state-cache", STATE.name)
        return [*mutable, self.immutable]

    @property
    def _elements(self) -> int:
        return self.elements or min(4, os.cpu_count() or 1)

    def _add_predicates(self, builder: TopologyBuilder, plan: ElementPlan) -> list[str]:
        names = []
        for d, dimension in enumerate(plan.predicate.dimensions):
            name = f"predicate-{d}"
            element = PredicateElement(d, str(dimension), plan.negated[d], self.logical_elements, self.permutations)
            subscription = builder.bolt(name, element)
            for stream in (LIMITS, probes_of(LEFT, d), probes_of(RIGHT, d), MERGE):
                subscription.global_grouping(ROUTER, stream.name)
            names.append(name)
        intersecting = LogicalAndElement(plan.negated, plan.ordered, self.intersection)
        logical = builder.bolt("logical-and", intersecting, self.logical_elements)
        logical.all_grouping(names[0], LIMITS.name)
        for name in names:
            logical.all_grouping(name, BLOCKS.name).direct_grouping(name, RANGES.name)
        return names
