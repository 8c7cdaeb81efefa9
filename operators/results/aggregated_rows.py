"""Results that are rows of one side with aggregates over their matches: on arrival, or when their window has closed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from indexes import Matches
from operators.protocol.columns import Int64
from operators.protocol.sides import LEFT, RIGHT
from operators.results.aggregated_columns import AggregatedColumns
from operators.results.probe_rows import TakenRows
from operators.results.result_kinds import NOBODY, NOTHING, CountedRows, ResultMaker, Results, positions_of
from operators.results.result_order import later_rows
from operators.results.unmatched import Bool
from operators.routing.growing_array import GrowingArray
from operators.values.selection import Selection


def aggregate_maker(selection: Selection, placed: bool) -> ResultMaker:
    """The result maker of a selection with aggregates; `placed`: results come with their places."""
    columns = AggregatedColumns([each.item for each in selection.aggregated])
    if selection.kind.counts_on_arrival:
        return AggregatedRows(selection.side, columns)
    return ClosedRows(selection.side, columns, placed)


class AggregatedRows(CountedRows):
    """Every row of a side with aggregates over its matches among earlier rows, when all of these are known."""

    def __init__(self, side: int, columns: AggregatedColumns) -> None:
        super().__init__()
        self._side = side
        self._columns = columns
        self._totals: deque[tuple[int, list[pa.Array]]] = deque()

    def take_payload(self, side: int, payload: pa.RecordBatch) -> None:
        if side != self._side:
            self._columns.append(payload)

    def drop_before(self, side: int, position: int) -> None:
        if side != self._side:
            self._columns.drop_before(position)

    def total(self, first: int, totals: list[pa.Array]) -> None:
        self._totals.append((first, totals))

    def complete(self, rows: tuple[TakenRows, TakenRows], matches: tuple[Matches, Matches], ordered: bool) -> Results:
        side = self._side
        own = matches[side]
        self._take_shown(1 - side, len(matches[1 - side]))
        self._take_counts(1 - side, matches[1 - side])
        shown = self._take_shown(side, len(own))
        counts = self._take_counts(side, own)
        found = _of_rows(self._over(rows[side].first, own, counts), shown, len(own))
        return _on_side(side, rows[side].first + shown, found, None)

    def _over(self, first: int, own: Matches, counts: Int64) -> tuple[pa.Array, ...]:
        """The aggregates of the next rows: those that an element has computed, or over the matches that are listed."""
        taken: list[tuple[int, list[pa.Array]]] = []
        while self._totals and self._totals[0][0] < first + len(own):
            taken.append(self._totals.popleft())
        if not taken:
            return self._columns.over(own, counts)
        if sum(len(columns[0]) for _, columns in taken) == len(own):
            return tuple(pa.concat_arrays(columns) for columns in zip(*(each for _, each in taken), strict=True))
        listed = self._columns.over(own, counts)
        return tuple(
            _filled(column, first, [(at, each[number]) for at, each in taken]) for number, column in enumerate(listed)
        )

    @property
    def nbytes(self) -> int:
        return self._columns.nbytes


@dataclass(frozen=True)
class _Pairs:
    """Pairs by the position of the row that they are aggregated for, ascending, and the position of its match."""

    own: Int64
    other: Int64


class ClosedRows(ResultMaker):
    """Every row of a side with aggregates over all its matches, at the place where it expires.

    The pairs of a row are held until then, in one piece for each time that rows became complete.
    """

    def __init__(self, side: int, columns: AggregatedColumns, placed: bool) -> None:
        self._side = side
        self._columns = columns
        self._placed = placed
        self._hidden = GrowingArray(np.bool_)
        self._pairs: list[_Pairs] = []

    def arrive(self, side: int, seqs: Int64, hidden: Bool | None) -> None:
        if side == self._side:
            self._hidden.append(np.zeros(len(seqs), np.bool_) if hidden is None else hidden)

    def take_payload(self, side: int, payload: pa.RecordBatch) -> None:
        if side != self._side:
            self._columns.append(payload)

    def drop_before(self, side: int, position: int) -> None:
        if side != self._side:
            self._columns.drop_before(position)

    def pairs(self, left: Int64, right: Int64) -> Results:
        self._keep(*((left, right) if self._side == LEFT else (right, left)))
        return NOTHING

    def complete(self, rows: tuple[TakenRows, TakenRows], matches: tuple[Matches, Matches], ordered: bool) -> Results:
        side = self._side
        mine, theirs = matches[side], matches[1 - side]
        self._keep(
            np.concatenate([later_rows(rows[side].first, mine), theirs.positions]),
            np.concatenate([mine.positions, later_rows(rows[1 - side].first, theirs)]),
        )
        seqs = np.concatenate([rows[LEFT].seq, rows[RIGHT].seq])
        if not len(seqs):
            return NOTHING
        order = np.argsort(seqs, kind="stable")
        borders = np.concatenate([rows[LEFT].expired(side), rows[RIGHT].expired(side)])[order]
        first, end = self._hidden.base, max(self._hidden.base, int(borders[-1]))
        places = seqs[order][np.searchsorted(borders, np.arange(first, end), side="right")]
        at = (positions_of(places, rows[LEFT]), positions_of(places, rows[RIGHT])) if self._placed else None
        return self._close(end, at)

    def end(self) -> Results:
        end = self._hidden.base + len(self._hidden)
        nobody = np.full(len(self._hidden), NOBODY)
        return self._close(end, (nobody, nobody) if self._placed else None)

    def needed_from(self, side: int) -> int | None:
        if side == self._side:
            return self._hidden.base
        return min((int(each.other.min()) for each in self._pairs), default=None)

    @property
    def nbytes(self) -> int:
        return self._columns.nbytes + sum(each.own.nbytes + each.other.nbytes for each in self._pairs)

    def check_invariants(self) -> None:
        for each in self._pairs:
            # pairs are of rows that have not expired, in their order
            assert len(each.own)
            assert each.own[0] >= self._hidden.base
            assert (np.diff(each.own) >= 0).all()

    def _keep(self, own: Int64, other: Int64) -> None:
        if len(own):
            order = np.argsort(own, kind="stable")
            self._pairs.append(_Pairs(own[order], other[order]))

    def _close(self, end: int, places: tuple[Int64, Int64] | None) -> Results:
        """The results of the rows before position `end`, which may have no more matches."""
        first = self._hidden.base
        if end == first:
            return NOTHING
        closed, kept = [], []
        for each in self._pairs:
            cut = int(np.searchsorted(each.own, end))
            if cut:
                closed.append(_Pairs(each.own[:cut], each.other[:cut]))
            if cut < len(each.own):
                kept.append(_Pairs(each.own[cut:], each.other[cut:]) if cut else each)
        self._pairs = kept
        own = np.concatenate([np.empty(0, np.int64), *(each.own for each in closed)])
        other = np.concatenate([np.empty(0, np.int64), *(each.other for each in closed)])
        offsets = np.zeros(end - first + 1, np.int64)
        np.cumsum(np.bincount(own - first, minlength=end - first), out=offsets[1:])
        matches = Matches(offsets, other[np.argsort(own, kind="stable")])
        shown = np.flatnonzero(~self._hidden.values[: end - first])
        self._hidden.drop_before(end)
        found = _of_rows(self._columns.over(matches, matches.counts()), shown, len(matches))
        at = None if places is None else (places[LEFT][shown], places[RIGHT][shown])
        return _on_side(self._side, first + shown, found, at)


def _filled(column: pa.Array, first: int, pieces: list[tuple[int, pa.Array]]) -> pa.Array:
    """A column whose first row is at position `first`, with pieces of it replaced, each from a position on."""
    kind, parts, end = pieces[0][1].type, [], 0
    for at, piece in pieces:
        parts += [column.slice(end, at - first - end).cast(kind), piece]
        end = at - first + len(piece)
    return pa.concat_arrays([*parts, column.slice(end).cast(kind)])


def _of_rows(found: tuple[pa.Array, ...], shown: Int64, rows: int) -> tuple[pa.Array, ...]:
    """Aggregates of the rows that are shown."""
    return found if len(shown) == rows else tuple(each.take(pa.array(shown)) for each in found)


def _on_side(side: int, positions: Int64, found: tuple[pa.Array, ...], places: tuple[Int64, Int64] | None) -> Results:
    nobody = np.full(len(positions), NOBODY)
    left, right = (positions, nobody) if side == LEFT else (nobody, positions)
    return Results(left, right, None, places, found)
