"""IndexJoin as an engine: threads that share one index per window.

Paper: "Parallel Index-based Stream Join on a Multicore CPU", Shahvarani, Jacobsen: its parallel index-based window
join (section 4) over the PIM-Tree (section 3).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from operators.engines.index_join.divided_element import DividedElement
from operators.engines.index_join.divider import Divider, dividing_dimensions
from operators.engines.index_join.element import IndexJoinElement
from operators.engines.index_join.totals_element import TotalsElement, total_dimensions
from operators.engines.shared.configured_index import ConfiguredIndex
from operators.engines.shared.engine import ROUTER, ElementPlan, Engine
from operators.engines.shared.index_setting import IndexSetting
from operators.engines.shared.setting_checks import AUTO, check_index, check_number
from operators.engines.shared.work_queue import WorkQueue
from operators.protocol.streams import LIMITS, PROBES, STEP, VALUES
from operators.query.errors import JoinError
from operators.query.predicate import Predicate
from topology import TopologyBuilder

WORK_QUEUE = "work-queue"
DIVIDER = "divider"
INDEX_JOIN = "index-join"

ITEM_ROWS = 8192
"""Some milliseconds of work: so much that taking an item costs nothing, so little that a step is shared out evenly."""


@dataclass(frozen=True)
class IndexJoin(Engine):
    """The engine of the parallel index-based window join.

    The windows are not divided. Every row is stored once, in an index that all threads share, and probes once, in the
    thread that took its work item. So a row costs the same whatever the number of threads; engines that divide the
    window probe every part of it.

    index:      the index that holds a window, by its name in the catalogue or configured, as
                `PIMTree(merge_ratio=1 / 8)`; "auto" chooses. With the PIMTree several threads insert at the same time,
                and a merge goes on beside the join. With "auto", aggregates over one range of keys, or over an equality
                and a range, come from running sums instead of matches (`TotalsElement`).
    threads:    threads that insert and probe; None: one per core. They belong to one process, also on Ray.
    task_rows:  rows of a work item, which a thread takes at once. With fewer, the results of a step's first rows leave
                sooner; with more, less is spent on handing out items.
    partitions: elements among which keys are divided, each with indexes and threads of its own; on Ray they are
                actors, on any machines. Without an equality, a band or a comparison of the two streams, rows are dealt
                by position, and every row asks every element.
    rows_per_map: rows after which the keys of several elements are divided anew; None: when loads have drifted apart.
    """

    index: str | ConfiguredIndex = "PIMTree"
    threads: int | None = None
    task_rows: int = ITEM_ROWS
    partitions: int = 1
    rows_per_map: int | None = None

    def __post_init__(self) -> None:
        check_index("IndexJoin", self.index, shared=True)
        if isinstance(self.index, ConfiguredIndex):
            usual = {each.name: each.default for each in fields(self)}
            for setting, value in self.index.engine_settings.items():
                given = getattr(self, setting)
                if given not in (value, usual[setting]):
                    raise JoinError(f"IndexJoin: {setting}={given} and {value} in {self.index.name}: give it once")
                object.__setattr__(self, setting, value)
        check_number("IndexJoin", "threads", self.threads, optional=True)
        check_number("IndexJoin", "task_rows", self.task_rows)
        check_number("IndexJoin", "partitions", self.partitions)
        check_number("IndexJoin", "rows_per_map", self.rows_per_map, optional=True)
        if self.rows_per_map is not None and self.partitions == 1:
            raise JoinError(
                "IndexJoin: rows_per_map divides keys among several elements: leave it out, or partitions=2"
            )

    @property
    def can_count(self) -> bool:
        return True

    @property
    def counted(self) -> Mapping[str, str]:
        return {INDEX_JOIN: "partitions"}

    def can_total(self, predicate: Predicate) -> bool:
        return self.index == AUTO and self.partitions == 1 and total_dimensions(predicate) is not None

    def add_elements(self, builder: TopologyBuilder, plan: ElementPlan) -> Sequence[str]:
        if plan.totals:
            return self._add_totals(builder, plan)
        if self.partitions > 1:
            return self._add_divided(builder, plan)
        setting = IndexSetting.of(self.index, plan, 1, self._threads)
        queue = builder.bolt(WORK_QUEUE, WorkQueue(plan.negated, self.task_rows))
        described = IndexJoinElement(plan.negated, plan.ordered, setting, self._threads, plan.counts)
        element = builder.bolt(INDEX_JOIN, described)
        for stream in STEP:
            queue.global_grouping(ROUTER, stream.name)
            element.global_grouping(WORK_QUEUE, stream.name)
        return [INDEX_JOIN]

    def _add_divided(self, builder: TopologyBuilder, plan: ElementPlan) -> Sequence[str]:
        dimensions = dividing_dimensions(plan.predicate)
        decided = [plan.predicate.dimensions[d] for d in dimensions]
        names, points = tuple(map(str, decided)), tuple(each.is_point for each in decided)
        described = Divider(plan.negated, dimensions, names, points, self.partitions, self.rows_per_map)
        divider = builder.bolt(DIVIDER, described)
        setting = IndexSetting.of(self.index, plan, 1, self._threads)
        element = builder.bolt(
            INDEX_JOIN,
            DividedElement(
                plan.negated, plan.ordered, setting, self._threads, plan.counts, self.task_rows * self.partitions
            ),
            self.partitions,
        )
        for stream in STEP:
            divider.global_grouping(ROUTER, stream.name)
        element.all_grouping(DIVIDER, LIMITS.name)
        for stream in PROBES:
            element.direct_grouping(DIVIDER, stream.name)
        return [INDEX_JOIN]

    def _add_totals(self, builder: TopologyBuilder, plan: ElementPlan) -> Sequence[str]:
        dimensions = total_dimensions(plan.predicate)
        assert dimensions is not None, "the engine was asked whether it can"
        described = TotalsElement(
            plan.negated, plan.totals, plan.own, dimensions, IndexSetting.of(self.index, plan, 1), self._threads
        )
        element = builder.bolt(INDEX_JOIN, described)
        for stream in (*STEP, VALUES[1 - plan.own]):
            element.global_grouping(ROUTER, stream.name)
        return [INDEX_JOIN]

    @property
    def _threads(self) -> int:
        return self.threads or os.cpu_count() or 1
