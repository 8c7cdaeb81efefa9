"""SplitJoin as an engine: independent join cores between a distribution tree and a collection tree.

Paper: "SplitJoin: A Scalable, Low-latency Stream Join Architecture with Adjustable Ordering Precision", Najafi,
Sadoghi, Jacobsen. The elements are those of its figure 11.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from operators.engines.shared.configured_index import ConfiguredIndex
from operators.engines.shared.engine import ElementPlan, Engine
from operators.engines.shared.index_setting import IndexSetting
from operators.engines.shared.setting_checks import check_index, check_number
from operators.engines.split_join.collection_tree import add_collection_tree
from operators.engines.split_join.distribution_tree import add_distribution_tree
from operators.engines.split_join.join_core import JoinCore
from operators.protocol.streams import STEP
from topology import TopologyBuilder


@dataclass(frozen=True)
class SplitJoin(Engine):
    """The engine of SplitJoin.

    cores:  join cores, each of which stores an equal share of both windows; None: one per processor.
    fanout: the most consumers of a relay in the distribution tree, and producers of a merger in the collection tree.
    index:  the index in each core, by its name in the catalogue or configured; "auto" chooses; None: the paper's nested
            loop.

    Every row goes to all cores, and one of them stores it. A core can tell which from the row's position, without
    coordination. Where we depart: rows come in steps; expiry is exact through live ranges; mergers and combiner follow
    the ordering of the join (`orderings`).
    """

    cores: int | None = None
    fanout: int = 4
    index: str | ConfiguredIndex | None = None

    def __post_init__(self) -> None:
        check_number("SplitJoin", "cores", self.cores, optional=True)
        check_number("SplitJoin", "fanout", self.fanout, least=2)
        check_index("SplitJoin", self.index, optional=True)

    @property
    def collector(self) -> str:
        return "combiner"

    @property
    def can_count(self) -> bool:
        return True

    @property
    def counted(self) -> Mapping[str, str]:
        return {"join-core": "cores"}

    def add_elements(self, builder: TopologyBuilder, plan: ElementPlan) -> Sequence[str]:
        cores = self.cores or os.cpu_count() or 1
        setting = None if self.index is None else IndexSetting.of(self.index, plan, cores)
        names = [f"join-core-{number}" for number in range(cores)]
        for number, relay in enumerate(add_distribution_tree(builder, cores, self.fanout)):
            described = JoinCore(number, cores, plan.negated, ordered=False, setting=setting, counts=plan.counts)
            core = builder.bolt(names[number], described)
            for stream in STEP:
                core.global_grouping(relay, stream.name)
        return [add_collection_tree(builder, names, self.fanout, plan.ordering, plan.counts)]
