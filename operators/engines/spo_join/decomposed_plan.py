"""The mutable part of SPO-Join as in the paper's figure 3: predicate elements and logical-AND elements.

In: the router's rows, one stream per dimension. Out: matches with the mutable part, and sorted runs. For comparison: on
one machine the fused plan, one `MutableElement`, is cheaper (docs/decisions.md).
"""

from __future__ import annotations

from operators.engines.shared.engine import ROUTER, ElementPlan
from operators.engines.spo_join.logical_and_element import Intersection, LogicalAndElement
from operators.engines.spo_join.predicate_element import PredicateElement
from operators.engines.spo_join.streams import BLOCKS, RANGES
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.streams import LIMITS, MERGE, probes_of
from topology import TopologyBuilder

LOGICAL_AND = "logical-and"


def add_decomposed_plan(
    builder: TopologyBuilder, plan: ElementPlan, logical_elements: int, permutations: int, intersection: Intersection
) -> list[str]:
    """Add the elements; return the predicate elements, which emit sorted runs. `LOGICAL_AND` answers probes."""
    names = []
    for d, dimension in enumerate(plan.predicate.dimensions):
        name = f"predicate-{d}"
        element = PredicateElement(d, str(dimension), plan.negated[d], logical_elements, permutations)
        subscription = builder.bolt(name, element)
        for stream in (LIMITS, probes_of(LEFT, d), probes_of(RIGHT, d), MERGE):
            subscription.global_grouping(ROUTER, stream.name)
        names.append(name)
    logical = builder.bolt(LOGICAL_AND, LogicalAndElement(plan.negated, plan.ordered, intersection), logical_elements)
    logical.all_grouping(names[0], LIMITS.name)
    for name in names:
        logical.all_grouping(name, BLOCKS.name).direct_grouping(name, RANGES.name)
    return names
