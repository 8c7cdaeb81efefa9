"""One of several index-join elements: it stores the rows whose keys are its own, and answers those that ask it.

In: limits of every step, and its rows, from the divider. Out: their matches, and the punctuation of every step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from indexes import Live, Matches, WindowIndex
from operators.engines.index_join.element import IndexJoinElement, IndexJoinTask
from operators.engines.shared.steps import Step
from operators.engines.shared.work_queue import item_ends
from operators.protocol.columns import Int64
from operators.protocol.divided_rows import DividedRows
from operators.protocol.element_rows import ElementRows
from operators.protocol.limits import Limits
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import stream_of
from operators.protocol.streams import JoinStream
from operators.routing.growing_array import GrowingArray
from topology import Batch, Emit, Origin, Punctuation, Task, TaskContext


class OwnRows:
    """The positions of the rows of one side that an element stores. Its index counts them 0, 1, 2, ....

    stored positions 3, 4, 9 and 12 are rows 0, 1, 2 and 3; live [4, 10) is rows [1, 3), positions 4 and 9
    """

    def __init__(self) -> None:
        self._positions = GrowingArray(np.int64)

    @property
    def end(self) -> int:
        """The number of the next row."""
        return self._positions.base + len(self._positions)

    def append(self, rows: ElementRows) -> ElementRows:
        """The rows as the index counts them. Cost: O(rows)."""
        first = self.end
        positions = rows.positions
        self._positions.append(np.arange(rows.first, rows.first + len(rows)) if positions is None else positions)
        return replace(rows, first=first, positions=None)

    def live(self, live: Live) -> Live:
        """Live positions as rows. Cost: O(probe rows * log rows)."""
        start, end = (
            self._positions.base + np.searchsorted(self._positions.values, each) for each in (live.start, live.end)
        )
        return Live(start, end)

    def found(self, matches: Matches) -> Matches:
        """Matches of rows as matches of positions. Cost: O(matches)."""
        return Matches(matches.offsets, self._positions.values[matches.positions - self._positions.base])

    def expire(self, below: int) -> int:
        """Forget the positions below one; the number of the first row that is left."""
        gone = int(np.searchsorted(self._positions.values, below))
        self._positions.drop_before(self._positions.base + gone)
        return self._positions.base

    def check_invariants(self) -> None:
        # positions ascend
        assert (np.diff(self._positions.values) > 0).all()


@dataclass(frozen=True)
class DividedElement(IndexJoinElement):
    """An index-join element of several. A window's rows are divided by key, so each index holds some of them.

    item_rows: rows of all elements together that one work item spans.
    """

    item_rows: int = 1

    def build(self, context: TaskContext) -> Task:
        return DividedTask(self)


class DividedTask(IndexJoinTask):
    """Translates positions into rows of its indexes and back."""

    def __init__(self, description: DividedElement) -> None:
        super().__init__(description)
        self._item_rows = description.item_rows
        self._rows: list[DividedRows | None] = [None, None]
        self._own = (OwnRows(), OwnRows())

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        stream = stream_of(batch.stream)
        if stream.kind is JoinStream.LIMITS:
            self._limits = Limits.from_batch(batch)
        else:
            self._rows[stream.side] = DividedRows.from_batch(batch, self._description.negated)
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        came, self._rows = self._rows, [None, None]
        stored = [None if rows is None else rows.stored for rows in came]
        probing = [None if rows is None else rows.probing for rows in came]
        self._set_shares(came, stored)
        own = [[self._own[side].append(rows)] if (rows := stored[side]) is not None else [] for side in (0, 1)]
        self._insert(own, [[rows] if rows is not None else [] for rows in probing])
        items = list(self._items_of(Step(self._limits, (probing[LEFT], probing[RIGHT]), punctuation)))
        yield from self._answering.answer_all(items, self._probe, self._count if self._limits.counting else None)
        # only now: the first rows of the step may meet what the last ones no longer do
        self._expire(self._limits.live)

    def check_invariants(self) -> None:
        super().check_invariants()
        for own in self._own:
            own.check_invariants()

    def _items_of(self, step: Step) -> Iterator[Step]:
        """The step in work items, if there are threads to share them."""
        if self._description.threads > 1:
            for last in item_ends(step, self._item_rows)[:-1]:
                item, step = step.split(last)
                yield item
        yield step

    def _set_shares(self, came: Sequence[DividedRows | None], stored: Sequence[ElementRows | None]) -> None:
        """Before an index is chosen: its part of the window is this element's part of the rows that have just come."""
        whole, own = self._description.setting.rows, list(self.setting.rows)
        for side, (all_rows, kept) in enumerate(zip(came, stored, strict=True)):
            if self._indexes[side] is None and all_rows is not None and kept is not None:
                own[side] = max(1, round(whole[side] * len(kept) / all_rows.of))
        self.setting = replace(self.setting, rows=(own[LEFT], own[RIGHT]))

    def _probe(self, side: int, rows: ElementRows, most: int) -> Matches | None:
        index, own = self._indexes[1 - side], self._own[1 - side]
        if index is None:
            return Matches.empty(len(rows))
        live = own.live(rows.live)
        matches = index.probe_within(most, rows.intervals, live, ordered=self._description.ordered)
        return None if matches is None else own.found(matches)

    def _count(self, side: int, rows: ElementRows) -> Int64:
        index = self._indexes[1 - side]
        if index is None:
            return np.zeros(len(rows), np.int64)
        return index.count(rows.intervals, self._own[1 - side].live(rows.live))

    def _expire(self, live: tuple[int, int]) -> None:
        for side in (LEFT, RIGHT):
            index: WindowIndex | None = self._indexes[side]
            first = self._own[side].expire(live[side])
            if index is not None:
                index.expire(first)
