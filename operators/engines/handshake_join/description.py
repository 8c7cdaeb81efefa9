"""Handshake join as an engine: a chain of cores that the two streams pass in opposite directions.

Papers: handshake join (Teubner, Mueller) and its low-latency variant (Roy, Teubner, Gemulla), as the papers on PIM-Tree
(section 2.2.3) and SplitJoin (sections 1 and 6.1) describe them. It is their baseline, and here for comparison only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from operators.engines.handshake_join.chain_core import FlowLink, HandshakeCore
from operators.engines.handshake_join.streams import ENTERING, LEAVING, SEGMENT
from operators.engines.shared.configured_index import ConfiguredIndex
from operators.engines.shared.engine import ROUTER, ElementPlan, Engine
from operators.engines.shared.index_setting import IndexSetting
from operators.engines.shared.setting_checks import check_flag, check_index, check_number
from operators.protocol.sides import LEFT, RIGHT, SIDES
from operators.protocol.streams import LIMITS, PROBES
from topology import TopologyBuilder


@dataclass(frozen=True)
class HandshakeJoin(Engine):
    """The engine of handshake join.

    cores:       the length of the chain; None: one per processor.
    low_latency: each row is stored at one core, in turn. False: as in the original, stored rows move along the chain
                 when newer ones push them on, so each row enters and leaves every core's index.
    index:       the index in each core, by its name in the catalogue or configured; "auto" chooses; None: the nested
                 loop.

    Latency grows with the length of the chain: a core can answer a step when both streams have reached it. In the
    original a row is compared only as it is pushed along, so its last matches wait for a window's worth of later rows,
    and on an idle stream a step would never be answered in full. Here probe rows run ahead in both variants:
    `low_latency=False` keeps the moving of stored rows and its cost, but not the waiting.
    """

    cores: int | None = None
    low_latency: bool = True
    index: str | ConfiguredIndex | None = None

    def __post_init__(self) -> None:
        check_number("HandshakeJoin", "cores", self.cores, optional=True)
        check_flag("HandshakeJoin", "low_latency", self.low_latency)
        check_index("HandshakeJoin", self.index, optional=True)

    @property
    def can_count(self) -> bool:
        return True

    @property
    def counted(self) -> Mapping[str, str]:
        return {"handshake-core": "cores"}

    def add_elements(self, builder: TopologyBuilder, plan: ElementPlan) -> Sequence[str]:
        cores = self.cores or os.cpu_count() or 1
        moving = not self.low_latency
        setting = None if self.index is None else IndexSetting.of(self.index, plan, cores)
        for side, along in ((LEFT, range(cores)), (RIGHT, range(cores - 1, -1, -1))):
            before = ROUTER
            for hops, number in enumerate(along):
                name = f"{SIDES[side]}-flow-{number}"
                link = builder.bolt(name, FlowLink(side, hops, cores, len(plan.negated), moving))
                link.global_grouping(before, LIMITS.name).global_grouping(before, PROBES[side].name)
                if moving and hops:
                    link.global_grouping(before, LEAVING[side].name)
                before = name
        names = [f"handshake-core-{number}" for number in range(cores)]
        for number, name in enumerate(names):
            described = HandshakeCore(number, cores, plan.negated, plan.ordered, setting, moving, plan.counts)
            core = builder.bolt(name, described)
            for side in (LEFT, RIGHT):
                passed = (LIMITS, PROBES[side])
                for stream in (*passed, ENTERING[side], SEGMENT[side]) if moving else passed:
                    core.global_grouping(f"{SIDES[side]}-flow-{number}", stream.name)
        return names
