"""IndexJoin as an engine: threads that share one index per window.

Paper: "Parallel Index-based Stream Join on a Multicore CPU", Shahvarani, Jacobsen: its parallel index-based window
join (section 4) over the PIM-Tree (section 3).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from indexes import CATALOGUE
from operators.engines.index_join.element import IndexJoinElement
from operators.engines.index_join.key_share import dividing_dimension
from operators.engines.shared.engine import ROUTER, ElementPlan, Engine
from operators.engines.shared.index_setting import AUTO, IndexSetting
from operators.engines.shared.work_queue import WorkQueue
from operators.protocol.streams import STEP
from operators.query.errors import JoinError
from topology import TopologyBuilder

WORK_QUEUE = "work-queue"
INDEX_JOIN = "index-join"

TASK_ROWS = 8192
"""Some milliseconds of work: enough to make the cost of taking a task vanish, and little enough to share out a step."""


@dataclass(frozen=True)
class IndexJoin(Engine):
    """The engine of the parallel index-based window join.

    The windows are not divided: every row is stored once, in an index that all threads share, and is searched for once,
    by the thread that took its task. So a row costs the same whatever the number of threads, where engines that divide
    the window search every part of it.

    index:     what holds a window, by its name in the catalogue; "auto" chooses. With the PIMTree several threads
               insert at the same time.
    threads:   threads that insert and probe; None: one per core. They are threads of one process, also on Ray.
    task_rows: rows that a thread takes at once. Fewer: results of a step's first rows leave sooner; more: less is spent
               on handing out tasks.
    partitions: elements among which the keys of an equality are divided, each with indexes and threads of its own; on
               Ray they are actors, on any machines. Needs an equality in the condition.
    """

    index: str = "PIMTree"
    threads: int | None = None
    task_rows: int = TASK_ROWS
    partitions: int = 1

    def __post_init__(self) -> None:
        for name in ("threads", "task_rows", "partitions"):
            value = getattr(self, name)
            if value is None and name == "threads":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise JoinError(f"IndexJoin: {name} must be a whole number of 1 or more, not {value!r}")
        if self.index != AUTO and self.index not in CATALOGUE:
            raise JoinError(f"IndexJoin: index must be one of {', '.join([AUTO, *CATALOGUE])}; not {self.index!r}")

    @property
    def can_count(self) -> bool:
        return True

    def add_elements(self, builder: TopologyBuilder, plan: ElementPlan) -> Sequence[str]:
        setting = IndexSetting.of("IndexJoin", self.index, plan, self.partitions)
        dividing = dividing_dimension(plan.predicate)
        if self.partitions > 1 and dividing is None:
            raise JoinError(
                f"IndexJoin: partitions={self.partitions} divides the keys of an equality, and `{plan.predicate}` has "
                "none: leave partitions out, or add an equality"
            )
        queue = builder.bolt(WORK_QUEUE, WorkQueue(plan.negated, self.task_rows))
        threads = self.threads or os.cpu_count() or 1
        described = IndexJoinElement(plan.negated, plan.ordered, setting, threads, plan.counts, dividing)
        element = builder.bolt(INDEX_JOIN, described, self.partitions)
        for stream in STEP:
            queue.global_grouping(ROUTER, stream.name)
            element.all_grouping(WORK_QUEUE, stream.name)
        return [INDEX_JOIN]
