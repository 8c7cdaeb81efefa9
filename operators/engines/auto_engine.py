"""The choice of an engine where the user leaves it open, with its reason."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from operators.engines.index_join.description import IndexJoin
from operators.engines.shared.engine import Engine
from operators.engines.shared.index_setting import asked_of
from operators.engines.shared.setting_checks import AUTO
from operators.engines.spo_join.description import SPOJoin
from operators.query.predicate import Predicate
from operators.query.windows import Window

FEW_ROWS = 1 << 16
"""Windows up to which two inequalities are answered from sorted blocks in one element. Measured with micro-batches of
10,000, in tuples for each second of processor time: 1.9 million against SPOJoin's 1.3 in windows of 2^15 rows, 1.4
against 1.1 in 2^17 with both cores used by SPOJoin only, 0.45 against 0.6 in 2^20."""


@dataclass(frozen=True)
class EngineChoice:
    """An engine and, in a sentence, the reason for it."""

    engine: Engine
    reason: str

    def __str__(self) -> str:
        return f"{type(self.engine).__name__}, since {self.reason}"


def choose_engine(predicate: Predicate, windows: Sequence[Window] = ()) -> EngineChoice:
    """Choose from the condition and the windows; the index inside is chosen with the first rows (`index_setting`).

    Some engines compare every pair (ScaleJoin, SplitJoin and HandshakeJoin without an index) or divide a window among
    cores, so that every row probes each of them. They are for comparison and for clusters of many machines. On the
    cores of one machine, one shared index costs less (`python -m benchmarks engines`).
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
    elif windows and all(0 < (window.rows or 0) <= FEW_ROWS for window in windows):
        reason = f"windows of up to {FEW_ROWS:,} rows are a few sorted blocks, not worth a part that does not change"
    else:
        return EngineChoice(SPOJoin(), f"{len(asked)} columns of each side decide, and its segments match two at once")
    # Half of the cores: gate, router and collector take about as much as the index.
    return EngineChoice(IndexJoin(index=AUTO, threads=max(1, (os.cpu_count() or 1) // 2)), reason)
