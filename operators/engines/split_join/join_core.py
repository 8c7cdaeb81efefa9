"""The join core: stores its share of both windows and compares every row with what it stores (SplitJoin, section 4).

In: steps from the distribution tree. Out: the matches of every probe row with the rows stored here, then the
punctuation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from indexes import CATALOGUE, Interval, Keys, Live, Matches, NestedLoop, WindowIndex
from operators.engines.shared.index_setting import AUTO, IndexSetting
from operators.engines.shared.steps import Answering, Step, StepTask
from operators.engines.shared.window_share import WindowShare
from operators.protocol.columns import Int64
from operators.protocol.element_rows import ElementRows
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import outputs_of
from operators.protocol.streams import answer_streams
from operators.query.errors import JoinError
from topology import Bolt, Emit, Task, TaskContext


def check_core_settings(engine: str, cores: int | None, index: str | None) -> None:
    """Refuse what an engine of join cores cannot be made with."""
    if cores is not None and (isinstance(cores, bool) or not isinstance(cores, int) or cores < 1):
        raise JoinError(f"{engine}: cores must be a whole number of 1 or more, or None, not {cores!r}")
    if index is not None and index != AUTO and index not in CATALOGUE:
        names = ", ".join([AUTO, *CATALOGUE])
        raise JoinError(f"{engine}: index must be None for the nested loop, or one of {names}; not {index!r}")


def index_note(setting: IndexSetting | None) -> str:
    """What a core stores its rows in, and why, for the plan."""
    if setting is None:
        return "nested loop"
    return " | ".join(dict.fromkeys(str(setting.choice(side)) for side in (LEFT, RIGHT)))


class Region:
    """One side's part of a core: it stores rows of its own side and processes rows of the other side.

    The two have nothing to do with each other: which rows are stored is a matter of their positions, and which stored
    rows a processed row meets of its live range. So a whole step is stored first and processed afterwards, and the
    result is that of taking turns row by row.

    The paper has two ways of expiring (section 4.4), and both are here without being told apart. Passive: a count
    window's oldest rows go as new ones come. Active: rows of a time window go when a row of the other side finds them
    too old. Either way the live ranges leave them out to the row; `expire` frees their memory.

    setting: which index holds the rows; None: the nested loop.
    """

    def __init__(self, side: int, setting: IndexSetting | None, number: int = 0, cores: int = 1) -> None:
        self._side = side
        self._setting = setting
        self._number = number
        self._cores = cores
        self._share: WindowShare | None = None

    @property
    def stored(self) -> int:
        """Rows stored here since the beginning."""
        return 0 if self._share is None else self._share.stored

    @property
    def nbytes(self) -> int:
        """Bytes of the index."""
        return 0 if self._share is None else self._share.index.nbytes

    def store(self, first: int, keys: Sequence[Keys], probes: ElementRows | None) -> None:
        """Keep the own ones of the rows at positions first, first + 1, ...; `probes` help to choose the index."""
        if self._share is None:
            self._share = WindowShare(self._index(keys, probes), self._number, self._cores)
        self._share.insert(first, keys)

    def process(self, most: int, intervals: Sequence[Interval], live: Live, ordered: bool) -> Matches | None:
        """The stored rows that each row of the other side meets; None if they are more than `most`."""
        if self._share is None:
            return Matches.empty(len(live))
        return self._share.probe_within(most, intervals, live, ordered=ordered)

    def count(self, intervals: Sequence[Interval], live: Live) -> Int64:
        """How many of the stored rows each row of the other side meets."""
        if self._share is None:
            return np.zeros(len(live), np.int64)
        return self._share.count(intervals, live)

    def expire(self, below: int) -> None:
        """Positions below `below` are dead."""
        if self._share is not None:
            self._share.expire(below)

    def check_invariants(self) -> None:
        if self._share is not None:
            self._share.index.check_invariants()

    def _index(self, keys: Sequence[Keys], probes: ElementRows | None) -> WindowIndex:
        if self._setting is None:
            return NestedLoop(len(keys))
        return self._setting.make(self._side, keys, None if probes is None else probes.intervals)


@dataclass(frozen=True)
class JoinCore(Bolt):
    """Core `number` of `cores`; without a setting its index is the nested loop."""

    number: int
    cores: int
    negated: tuple[bool, ...]
    ordered: bool
    setting: IndexSetting | None = None
    counts: bool = False

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(answer_streams(self.counts))

    @property
    def note(self) -> str:
        return f"rows {self.number}, {self.number + self.cores}, ...; {index_note(self.setting)}"

    def build(self, context: TaskContext) -> Task:
        return JoinCoreTask(self)


class JoinCoreTask(StepTask):
    """A region for each side. The paper calls them by where they are drawn; here a region has its side's name."""

    def __init__(self, description: JoinCore) -> None:
        super().__init__(description.negated)
        self._ordered = description.ordered
        self._regions = tuple(
            Region(side, description.setting, description.number, description.cores) for side in (LEFT, RIGHT)
        )
        self._answering = Answering()

    def on_step(self, step: Step) -> Iterable[Emit]:
        for side in (LEFT, RIGHT):
            rows = step.rows[side]
            if rows is not None and len(rows):
                self._regions[side].store(rows.first, rows.keys, step.rows[1 - side])
        yield from self._answering.answer(step, self._process, self._count if step.limits.counting else None)
        for side in (LEFT, RIGHT):
            self._regions[side].expire(step.limits.live[side])

    def metrics(self) -> Mapping[str, float]:
        left, right = self._regions
        return {
            "left_stored": float(left.stored),
            "right_stored": float(right.stored),
            "index_bytes": float(left.nbytes + right.nbytes),
        }

    def check_invariants(self) -> None:
        for region in self._regions:
            region.check_invariants()

    def _process(self, side: int, rows: ElementRows, most: int) -> Matches | None:
        return self._regions[1 - side].process(most, rows.intervals, rows.live, self._ordered)

    def _count(self, side: int, rows: ElementRows) -> Int64:
        return self._regions[1 - side].count(rows.intervals, rows.live)
