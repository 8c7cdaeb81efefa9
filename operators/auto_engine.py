"""Which engine runs a join when the user leaves it open, and why."""

from __future__ import annotations

import os
from dataclasses import dataclass

from operators.engine import Engine
from operators.index_join import IndexJoin
from operators.index_setting import AUTO
from operators.predicate import Predicate
from operators.spo_join import SPOJoin


@dataclass(frozen=True)
class EngineChoice:
    """An engine and the reason for it, in a sentence."""

    engine: Engine
    reason: str

    def __str__(self) -> str:
        return f"{type(self.engine).__name__}, since {self.reason}"


def choose_engine(predicate: Predicate) -> EngineChoice:
    """From the shape of the condition; the index within is chosen with the first rows (`index_setting`).

    Engines that compare everything (ScaleJoin, SplitJoin and HandshakeJoin without an index) or that divide a window
    among cores, each of which is then searched by every row, are for comparison and for clusters of many machines: on
    the cores of one, an index that all share costs less (`python -m benchmarks engines`).
    """
    asked = [dimension for dimension in predicate.dimensions if not dimension.negated]
    if len(asked) == 1:
        # Half of the cores: gate, router and collector take about as much as the index.
        threads = max(1, (os.cpu_count() or 1) // 2)
        engine = IndexJoin(index=AUTO, threads=threads)
        return EngineChoice(engine, "one column of each side decides: one shared index finds its range")
    if not asked:
        return EngineChoice(SPOJoin(), "nothing but '!=' is asked, and it answers in pieces of sorted blocks")
    return EngineChoice(SPOJoin(), f"{len(asked)} columns of each side decide, and its segments match two at once")
