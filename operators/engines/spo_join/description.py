"""SPO-Join as an engine: a mutable part for new rows, an immutable part of PO-Join segments for the rest.

Paper: "SPO-Join: Efficient Stream Inequality Join", Aslam, Beedkar, Simonini. The elements are those of its figure 3.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from operators.engines.shared.engine import ROUTER, ElementPlan, Engine
from operators.engines.shared.setting_checks import check_choice, check_number
from operators.engines.spo_join.decomposed_plan import LOGICAL_AND, add_decomposed_plan
from operators.engines.spo_join.logical_and_element import Intersection
from operators.engines.spo_join.mutable_element import MutableElement
from operators.engines.spo_join.permutation_element import PermutationElement
from operators.engines.spo_join.po_join_element import Immutable, POJoinElement, State
from operators.engines.spo_join.state_cache import STATE_INTERVAL, StateCache
from operators.engines.spo_join.streams import RUNS, SEGMENTS, STATE
from operators.protocol.streams import LIMITS, MERGE, STEP
from operators.query.errors import JoinError
from operators.query.windows import Window
from operators.routing.merge_policy import MergePolicy, Merging, check_merge_time, has_slides
from topology import TopologyBuilder

MUTABLE = "mutable"
STATE_CACHE = "state-cache"
LOGICAL_ELEMENTS = 2

Mutable = Literal["fused", "decomposed"]
"""fused: the mutable part in one element. decomposed: a predicate element per dimension, and logical-AND elements."""


@dataclass(frozen=True)
class SPOJoin(Engine):
    """The engine of SPO-Join.

    elements:       PO-Join elements, among which segments are dealt round robin; None: one per core, at most 4.
    permutations:   permutation elements, which build segments beside the stream.
    merge_interval: rows of one segment, or in a TimeWindow the time that it covers ("1 min"); None: as `merging` says.
    probe_threads:  threads that share the segments of one PO-Join element for each probe. More elements are the better
                    way to use several cores; threads are for one element, as on Ray, that has a machine to itself.

    For comparison with the paper; the defaults are the fastest:

    mutable:          how the mutable part is laid out; see `Mutable` and docs/decisions.md.
    logical_elements: logical-AND elements of the decomposed plan; None: 2.
    intersection:     how these intersect; see `Intersection`.
    merging:          when a segment is due; see `Merging`.
    state:            how PO-Join elements learn what has expired; see `State`.
    state_interval:   steps between two readings of the shared cache; None: 4.
    immutable:        the structure of a segment; see `Immutable`.

    No result depends on any of these: every probe row carries the positions it may meet.
    """

    elements: int | None = None
    permutations: int = 1
    merge_interval: int | str | timedelta | None = None
    probe_threads: int = 1
    mutable: Mutable = "fused"
    logical_elements: int | None = None
    intersection: Intersection = "permutation"
    merging: Merging = "adaptive"
    state: State = "round robin"
    state_interval: int | None = None
    immutable: Immutable = "po-join"

    def __post_init__(self) -> None:
        for setting in ("elements", "logical_elements", "state_interval"):
            check_number("SPOJoin", setting, getattr(self, setting), optional=True)
        if isinstance(self.merge_interval, str | timedelta):
            check_merge_time(self.merge_interval)
        else:
            check_number("SPOJoin", "merge_interval", self.merge_interval, optional=True)
        for setting in ("permutations", "probe_threads"):
            check_number("SPOJoin", setting, getattr(self, setting))
        check_choice("SPOJoin", "mutable", self.mutable, Mutable)
        check_choice("SPOJoin", "intersection", self.intersection, Intersection)
        check_choice("SPOJoin", "merging", self.merging, Merging)
        check_choice("SPOJoin", "state", self.state, State)
        check_choice("SPOJoin", "immutable", self.immutable, Immutable)
        if self.merge_interval is not None and self.merging != "adaptive":
            raise JoinError(f"SPOJoin: merging={self.merging!r} fixes the interval: leave out merge_interval")
        if self.state_interval is not None and self.state != "shared cache":
            raise JoinError("SPOJoin: state_interval belongs to the cache: add state='shared cache', or leave it out")
        if self.mutable != "decomposed":
            for setting, default in (("intersection", "permutation"), ("logical_elements", None)):
                value = getattr(self, setting)
                if value != default:
                    raise JoinError(
                        f"SPOJoin: {setting}={value!r} belongs to the decomposed plan: add mutable='decomposed', "
                        f"or leave {setting} out"
                    )

    @property
    def split_fields(self) -> bool:
        return self.mutable == "decomposed"

    @property
    def can_count(self) -> bool:
        """The decomposed plan, which is for comparison only, enumerates matches."""
        return self.mutable == "fused"

    @property
    def counted(self) -> Mapping[str, str]:
        merging = "permutation" if self.immutable == "po-join" else "merge"
        logical = {LOGICAL_AND: "logical_elements"} if self.mutable == "decomposed" else {}
        return {self.immutable: "elements", merging: "permutations", **logical}

    def merge_policy(self, window: Window) -> MergePolicy:
        if self.merging != "adaptive" and not has_slides(window):
            raise JoinError(
                f"SPOJoin: merging={self.merging!r} makes segments of slides, and {window} has none that hold for all "
                "keys: leave merging out, set merge_interval, or use a TimeWindow with a slide or a CountWindow that "
                "is not per key"
            )
        if isinstance(self.merge_interval, str | timedelta):
            check_merge_time(self.merge_interval, window)
        return MergePolicy.of(window, self.merge_interval, self._elements, self.merging)

    def add_elements(self, builder: TopologyBuilder, plan: ElementPlan) -> Sequence[str]:
        if self.mutable == "fused":
            answering, sorters = MUTABLE, [MUTABLE]
            subscription = builder.bolt(
                MUTABLE, MutableElement(plan.negated, plan.ordered, self.permutations, plan.counts)
            )
            for stream in (*STEP, MERGE):
                subscription.global_grouping(ROUTER, stream.name)
        else:
            answering, logical = LOGICAL_AND, self.logical_elements or LOGICAL_ELEMENTS
            sorters = add_decomposed_plan(builder, plan, logical, self.permutations, self.intersection)
        permutes = self.immutable == "po-join"
        merging = "permutation" if permutes else "merge"
        permutation = PermutationElement(len(plan.negated), self._elements, permutes)
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
            cache = StateCache(self.state_interval or STATE_INTERVAL)
            builder.bolt(STATE_CACHE, cache).global_grouping(ROUTER, LIMITS.name)
            immutable.all_grouping(STATE_CACHE, STATE.name)
        return [answering, self.immutable]

    @property
    def _elements(self) -> int:
        return self.elements or min(4, os.cpu_count() or 1)
