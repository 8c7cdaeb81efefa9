"""PanJoin as an engine: a manager, and workers that hold chained subwindows.

Paper: "PanJoin: A Partition-based Adaptive Stream Join", Pan, Jacobsen. The elements are those of its figure 1.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from operators.engines.pan_join.manager import MOST_ROOM, PanManager
from operators.engines.pan_join.mirror import PanMirror
from operators.engines.pan_join.streams import COMMANDS, MIRRORED, RECORDS
from operators.engines.pan_join.structures import BISortSubwindows, Structure, structure_of
from operators.engines.pan_join.subwindow import key_dimension
from operators.engines.pan_join.worker import PanWorker, SubwindowSetting
from operators.engines.shared.engine import ROUTER, ElementPlan, Engine
from operators.engines.shared.index_setting import ROWS_OF_A_TIME_WINDOW, asked_of
from operators.engines.shared.setting_checks import check_flag, check_number
from operators.protocol.streams import STEP
from operators.query.errors import JoinError
from operators.query.windows import Window
from topology import TopologyBuilder

SUBWINDOWS = 4
"""Fewest subwindows of a window: expired rows stay until their whole subwindow has expired, and are probed too."""


@dataclass(frozen=True)
class PanJoin(Engine):
    """The engine of PanJoin.

    workers:    None: one per processor.
    subwindow:  rows of a subwindow; None: a quarter of the window, or less, so that each worker has one.
    structure:  the structure of a subwindow: "BISort", "RaPTable", "WiBPlusTree", the class of that name, or a
                description with parameters (`structures`).
    batch_rows: rows of one side that the manager collects before it commands the workers, unless no more rows are
                waiting; None: each step is a batch. More rows make BI-Sort's insertion cheaper.

    For comparison with the paper:

    records:    workers answer with records of BI-Sort's main array instead of positions, and a mirror turns them into
                positions. For BI-Sort and predicates of one dimension.

    Of several dimensions one is indexed, an equality before a range, and the others filter.

    Where we depart: results go to the collector and not back to the manager, as the paper leaves open (step 5). Workers
    send their status with them, but the manager derives what it needs from positions (`SubwindowChain`), so it never
    waits for a worker. No row comes late (`PanManagerTask`). A worker has one thread; to use more cores, use more
    workers. Records save nearly all bytes between workers and mirror: 45 instead of 2,600 for a row with 300 matches.
    But the mirror is alone, stores every row a second time and sends the matches on to the collector; on one machine
    the throughput was 0.75 to 1.2 of that with positions.
    """

    workers: int | None = None
    subwindow: int | None = None
    structure: Structure = "BISort"
    batch_rows: int | None = None
    records: bool = False

    def __post_init__(self) -> None:
        for setting in ("workers", "subwindow", "batch_rows"):
            check_number("PanJoin", setting, getattr(self, setting), optional=True)
        if self.subwindow is not None and self.subwindow > MOST_ROOM:
            raise JoinError(f"PanJoin: subwindow must be less than 2^31, not {self.subwindow}; chain smaller ones")
        check_flag("PanJoin", "records", self.records)
        if self.records and not isinstance(structure_of(self.structure), BISortSubwindows):
            raise JoinError(f"PanJoin: records=True needs structure='BISort', not {self.structure!r}")
        structure_of(self.structure)

    @property
    def counted(self) -> Mapping[str, str]:
        return {"worker": "workers"}

    def add_elements(self, builder: TopologyBuilder, plan: ElementPlan) -> Sequence[str]:
        workers = self.workers or os.cpu_count() or 1
        dimensions = plan.predicate.dimensions
        if self.records and len(dimensions) > 1:
            raise JoinError(f"PanJoin: records=True is for predicates of one dimension, this has {len(dimensions)}")
        asked = [asked_of(dimension) for dimension in dimensions]
        key = key_dimension([what == "point" for what in asked], [what == "nothing" for what in asked])
        setting = SubwindowSetting(structure_of(self.structure), plan.negated, key)
        left, right = (self._room(window, workers) for window in plan.windows)
        books = PanManager(plan.negated, workers, (left, right), self.batch_rows, mirrored=self.records)
        manager = builder.bolt("manager", books)
        for stream in STEP:
            manager.global_grouping(ROUTER, stream.name)
        worker = builder.bolt("worker", PanWorker(setting, plan.ordered, self.records), workers)
        for command in COMMANDS:
            worker.direct_grouping("manager", command.name)
        if not self.records:
            return ["worker"]
        mirror = builder.bolt("mirror", PanMirror(setting, plan.ordered))
        for stream in MIRRORED:
            mirror.global_grouping("manager", stream.name)
        for stream in RECORDS:
            mirror.global_grouping("worker", stream.name)
        return ["mirror"]

    def _room(self, window: Window, workers: int) -> int:
        if self.subwindow is not None:
            return self.subwindow
        rows = window.rows or ROWS_OF_A_TIME_WINDOW
        return min(MOST_ROOM, -(-rows // max(SUBWINDOWS, workers)))
