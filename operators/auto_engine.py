"""Which engine runs a join when the user leaves it open, and why."""

from __future__ import annotations

import os
from dataclasses import dataclass

from operators.engine import Engine
from operators.index_join import IndexJoin
from operators.index_setting import AUTO, asked_of
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
    asked = [what for dimension in predicate.dimensions if (what := asked_of(dimension)) != "nothing"]
    if not asked:
        return EngineChoice(SPOJoin(), "no range is asked for, and it answers in pieces of sorted blocks")
    bounded = [what for what in asked if what != "range"]
    if len(asked) == 1:
        reason = "one column of each side decides: one shared index finds its range"
    elif "point" in asked:
        reason = "an equality decides, or the rectangle that it makes with another range: one shared index finds either"
    elif len(bounded) >= 2:
        reason = f"{len(bounded)} bands are a rectangle: one shared index finds it"
    else:
        return EngineChoice(SPOJoin(), f"{len(asked)} columns of each side decide, and its segments match two at once")
    # Half of the cores: gate, router and collector take about as much as the index.
    return EngineChoice(IndexJoin(index=AUTO, threads=max(1, (os.cpu_count() or 1) // 2)), reason)
