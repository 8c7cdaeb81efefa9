"""From pairs to results: for each kind of join, the results of consecutive complete rows and their pairs.

A result is a row of the left and a row of the right side, either of which may be missing (`NOBODY`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from indexes import Matches
from operators.protocol.columns import Int64
from operators.protocol.expired_rows import ExpiredRows
from operators.protocol.sides import LEFT, RIGHT
from operators.query.kinds import Kind
from operators.results.pair_runs import PairRuns, runs_of
from operators.results.probe_rows import TakenRows
from operators.results.result_order import SideAnswers, pair_up
from operators.results.unmatched import Bool, MatchedRows
from operators.routing.growing_array import GrowingArray

NOBODY = -1


@dataclass(frozen=True)
class Results:
    """Results in order: the positions of their rows and, where they are counted, the number of matches.

    places:     left and right positions, of which the later row is the place of a result; None: the results' rows.
    aggregates: a column for each aggregate of the selection, if it has any.
    """

    left: Int64
    right: Int64
    matches: Int64 | None = None
    places: tuple[Int64, Int64] | None = None
    aggregates: tuple[pa.Array, ...] = ()

    def __len__(self) -> int:
        return len(self.left)

    def part(self, start: int, stop: int) -> Results:
        """Some of them."""
        matches = None if self.matches is None else self.matches[start:stop]
        places = None if self.places is None else (self.places[LEFT][start:stop], self.places[RIGHT][start:stop])
        aggregates = tuple(each.slice(start, stop - start) for each in self.aggregates)
        return Results(self.left[start:stop], self.right[start:stop], matches, places, aggregates)


AnyResults = Results | PairRuns

NOTHING = Results(np.empty(0, np.int64), np.empty(0, np.int64))


class ResultMaker(ABC):
    """Turns rows and pairs into the results of one kind of join."""

    def arrive(self, side: int, seqs: Int64, hidden: Bool | None) -> None:  # noqa: B027
        """Take the next rows of a side."""

    def take_payload(self, side: int, payload: pa.RecordBatch) -> None:  # noqa: B027
        """Take the payload of the next rows of a side."""

    def drop_before(self, side: int, position: int) -> None:  # noqa: B027
        """Forget the payload of the rows of a side below a position."""

    @abstractmethod
    def pairs(self, left: Int64, right: Int64) -> Results:
        """The results of pairs that need not wait for others."""

    @abstractmethod
    def complete(self, rows: tuple[TakenRows, TakenRows], matches: tuple[Matches, Matches], ordered: bool) -> Results:
        """The results of complete rows, except those of pairs that `pairs` has seen before.

        ordered: sort the pairs of one later row by the earlier row.
        """

    def of_answers(
        self, rows: tuple[TakenRows, TakenRows], answers: tuple[SideAnswers, SideAnswers], ordered: bool
    ) -> AnyResults:
        """As `complete`, from the elements' answers."""
        return self.complete(rows, (answers[LEFT].merged, answers[RIGHT].merged), ordered)

    def count(self, side: int, first: int, counts: Int64, rows: Int64 | None = None) -> None:
        """Take an element's numbers of matches for rows of a side, from position `first` on, or at positions `rows`."""
        raise AssertionError("only a count join asks for counts")

    def total(self, first: int, totals: list[pa.Array]) -> None:
        """Take an element's aggregates over the matches of rows, the first at position `first`."""
        raise AssertionError("only a join with aggregates asks for them")

    def expire(self, side: int, listed: ExpiredRows) -> None:  # noqa: B027
        """Take rows of a side that expire one by one, at places that may not be complete yet; lists come in order."""

    def end(self) -> Results:
        """The results at the end of all streams."""
        return NOTHING

    def needed_from(self, side: int) -> int | None:
        """The first position whose row may still come out unmatched; None: no row does."""
        return None

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return 0

    def check_invariants(self) -> None:  # noqa: B027
        """Assert what must hold between two calls."""


def result_maker(kind: Kind, placed: bool = False) -> ResultMaker:
    """The result maker of a kind; `placed`: results that are not pairs come with their places."""
    if kind is Kind.INNER:
        return InnerPairs()
    return CountedRows() if kind is Kind.COUNT else PairsAndRows(kind, placed)


class InnerPairs(ResultMaker):
    """Every pair."""

    def pairs(self, left: Int64, right: Int64) -> Results:
        return Results(left, right)

    def of_answers(
        self, rows: tuple[TakenRows, TakenRows], answers: tuple[SideAnswers, SideAnswers], ordered: bool
    ) -> AnyResults:
        runs = runs_of(rows, (answers[LEFT].parts, answers[RIGHT].parts), ordered)
        if runs is None:  # the positions of several answers alternate
            runs = runs_of(rows, (answers[LEFT].as_one, answers[RIGHT].as_one), ordered)
        return super().of_answers(rows, answers, ordered) if runs is None else runs

    def complete(self, rows: tuple[TakenRows, TakenRows], matches: tuple[Matches, Matches], ordered: bool) -> Results:
        return Results(*_paired(rows, matches, ordered))


class CountedRows(ResultMaker):
    """Every row with the number of its pairs, when it is complete; rows of both sides in order, the left role first."""

    def __init__(self) -> None:
        self._shown = (GrowingArray(np.bool_), GrowingArray(np.bool_))
        self._counts = (GrowingArray(np.int64), GrowingArray(np.int64))

    def count(self, side: int, first: int, counts: Int64, rows: Int64 | None = None) -> None:
        own = self._counts[side]
        end = first + len(counts) if rows is None else int(rows[-1]) + 1
        lacking = end - own.base - len(own)
        if lacking > 0:
            own.append(np.zeros(lacking, np.int64))
        if rows is None:
            own.values[first - own.base :][: len(counts)] += counts
        else:
            own.values[rows - own.base] += counts

    def arrive(self, side: int, seqs: Int64, hidden: Bool | None) -> None:
        self._shown[side].append(np.ones(len(seqs), np.bool_) if hidden is None else ~hidden)

    def pairs(self, left: Int64, right: Int64) -> Results:
        raise AssertionError("a row is counted when it is complete")

    def complete(self, rows: tuple[TakenRows, TakenRows], matches: tuple[Matches, Matches], ordered: bool) -> Results:
        seqs, positions, counts = [], [], []
        for side in (LEFT, RIGHT):
            shown = self._take_shown(side, len(matches[side]))
            seqs.append(rows[side].seq[shown])
            positions.append(rows[side].first + shown)
            counts.append(self._take_counts(side, matches[side])[shown])
        order = np.argsort(np.concatenate(seqs), kind="stable")
        nobody = [np.full(len(each), NOBODY) for each in positions]
        return Results(
            np.concatenate([positions[LEFT], nobody[RIGHT]])[order],
            np.concatenate([nobody[LEFT], positions[RIGHT]])[order],
            np.concatenate(counts)[order],
        )

    def _take_counts(self, side: int, matches: Matches) -> Int64:
        """The number of matches of the next rows of a side, from lists and from counts."""
        own, total = self._counts[side], matches.counts()
        known = own.values[: len(total)]
        total[: len(known)] += known
        own.append(np.zeros(max(0, len(total) - len(known)), np.int64))
        own.drop_before(own.base + len(total))
        return total

    def _take_shown(self, side: int, rows: int) -> Int64:
        """Which of the next rows of a side, by number, come out."""
        own = self._shown[side]
        shown = np.flatnonzero(own.values[:rows])
        own.drop_before(own.base + rows)
        return shown


class PairsAndRows(ResultMaker):
    """Pairs and unmatched rows of outer joins; first pairs of a semi join; unmatched rows of an anti join."""

    def __init__(self, kind: Kind, placed: bool = False) -> None:
        self._kind = kind
        self._placed = placed
        self._sides = tuple(MatchedRows() if each else None for each in kind.remembered)
        self._listed: tuple[list[ExpiredRows], list[ExpiredRows]] = ([], [])

    def arrive(self, side: int, seqs: Int64, hidden: Bool | None) -> None:
        remembered = self._sides[side]
        if remembered is not None:
            remembered.append(seqs, hidden)

    def expire(self, side: int, listed: ExpiredRows) -> None:
        self._listed[side].append(listed)

    def pairs(self, left: Int64, right: Int64) -> Results:
        if self._kind is Kind.SEMI:
            return self._first_pairs(left, right)
        for side, positions in ((LEFT, left), (RIGHT, right)):
            remembered = self._sides[side]
            if remembered is not None:
                remembered.mark(positions)
        return NOTHING if self._kind is Kind.ANTI else Results(left, right)

    def complete(self, rows: tuple[TakenRows, TakenRows], matches: tuple[Matches, Matches], ordered: bool) -> Results:
        found = self._found(rows, matches, ordered)
        positions, places, seqs, sides = self._expired(rows)
        if not len(positions):
            return found
        before = np.zeros(len(places), np.int64)
        if self._kind in (Kind.LEFT, Kind.RIGHT, Kind.FULL):
            before = _pairs_before(places, rows, matches)
        order = np.lexsort((sides, seqs, places))
        left, right = _alone(positions, sides)
        results = (
            np.insert(found.left, before[order], left[order]), np.insert(found.right, before[order], right[order])
        )  # fmt: skip
        if not self._placed:
            return Results(*results)
        at = [positions_of(places[order], each) for each in rows]
        placed = (
            np.insert(found.left, before[order], at[LEFT]), np.insert(found.right, before[order], at[RIGHT])
        )  # fmt: skip
        return Results(*results, None, placed)

    def _found(self, rows: tuple[TakenRows, TakenRows], matches: tuple[Matches, Matches], ordered: bool) -> Results:
        """The results of the pairs of complete rows; semi and anti joins do not list the pairs."""
        remembered = self._sides[LEFT]
        if self._kind not in (Kind.SEMI, Kind.ANTI):
            return self.pairs(*_paired(rows, matches, ordered))
        assert remembered is not None
        if self._kind is Kind.SEMI:
            if self._placed:
                return self._first_pairs(*_paired(rows, matches, ordered=True))
            first = remembered.mark_first_pairs(rows, matches)
            return Results(first, np.full(len(first), NOBODY))
        remembered.mark_later(rows[LEFT], matches[LEFT])
        remembered.mark(matches[RIGHT].positions)
        return NOTHING

    def _first_pairs(self, left: Int64, right: Int64) -> Results:
        """The left rows that have their first pair among these, at its place."""
        rows = self._sides[LEFT]
        assert rows is not None
        first = rows.mark_first(left)
        nobody = np.full(len(first), NOBODY)
        if not self._placed:
            return Results(first, nobody)
        distinct, at = np.unique(left, return_index=True)
        at = at[np.searchsorted(distinct, first)]
        return Results(first, nobody, None, (left[at], right[at]))

    def end(self) -> Results:
        alone = [
            (*rows.expire_all(), side)
            for side, rows in enumerate(self._sides)
            if rows is not None and self._kind.unmatched[side]
        ]
        if not alone:
            return NOTHING
        positions, seqs = (np.concatenate([each[i] for each in alone]) for i in (0, 1))
        sides = np.concatenate([np.full(len(each[0]), each[2]) for each in alone])
        order = np.lexsort((sides, seqs))
        left, right = _alone(positions, sides)
        nobody = np.full(len(order), NOBODY)
        return Results(left[order], right[order], None, (nobody, nobody) if self._placed else None)

    def needed_from(self, side: int) -> int | None:
        rows = self._sides[side]
        return None if rows is None else rows.first

    @property
    def nbytes(self) -> int:
        return sum(rows.nbytes for rows in self._sides if rows is not None)

    def check_invariants(self) -> None:
        for rows in self._sides:
            if rows is not None:
                rows.check_invariants()

    def _expired(self, rows: tuple[TakenRows, TakenRows]) -> tuple[Int64, Int64, Int64, Int64]:
        """The unmatched rows that expire at complete rows: positions, places, own sequence numbers, sides."""
        found = []
        seqs = np.concatenate([rows[LEFT].seq, rows[RIGHT].seq])
        order = np.argsort(seqs, kind="stable")
        if not len(seqs):
            return (NOTHING.left,) * 4
        for side, remembered in enumerate(self._sides):
            if remembered is None:
                continue
            if self._listed[side]:
                positions, places, own = self._take_listed(side, remembered, int(seqs[order[-1]]))
            else:
                borders = np.concatenate([rows[LEFT].expired(side), rows[RIGHT].expired(side)])[order]
                positions, places, own = remembered.expire(borders, seqs[order])
            if self._kind.unmatched[side]:
                found.append((positions, places, own, np.full(len(positions), side)))
        if not found:
            return (NOTHING.left,) * 4
        positions, places, own, sides = (np.concatenate([each[i] for each in found]) for i in range(4))
        return positions, places, own, sides

    def _take_listed(self, side: int, remembered: MatchedRows, complete: int) -> tuple[Int64, Int64, Int64]:
        """The unmatched ones among rows that expire one by one, at places up to `complete`."""
        taken = self._listed[side]
        positions = np.concatenate([each.positions for each in taken])
        places = np.concatenate([each.places for each in taken])
        done = int(np.searchsorted(places, complete, side="right"))
        later = ExpiredRows(positions[done:], places[done:], taken[-1].live)
        self._listed[side][:] = [later]
        below = min(later.live, int(later.positions.min()) if len(later.positions) else later.live)
        alone, own = remembered.expire_listed(positions[:done], below)
        return positions[:done][alone], places[:done][alone], own[alone]


def _paired(rows: tuple[TakenRows, TakenRows], matches: tuple[Matches, Matches], ordered: bool) -> tuple[Int64, Int64]:
    seqs = (rows[LEFT].seq, rows[RIGHT].seq)
    return pair_up(seqs, (rows[LEFT].first, rows[RIGHT].first), matches, ordered)


def _alone(positions: Int64, sides: Int64) -> tuple[Int64, Int64]:
    return np.where(sides == LEFT, positions, NOBODY), np.where(sides == RIGHT, positions, NOBODY)


def positions_of(seqs: Int64, rows: TakenRows) -> Int64:
    """The positions of the rows of one side with these sequence numbers; NOBODY where there is none."""
    own = rows.seq
    if not len(own):
        return np.full(len(seqs), NOBODY)
    at = np.minimum(np.searchsorted(own, seqs), len(own) - 1)
    return np.where(own[at] == seqs, rows.first + at, NOBODY)


def _pairs_before(places: Int64, rows: tuple[TakenRows, TakenRows], matches: tuple[Matches, Matches]) -> Int64:
    """How many pairs belong to rows before each place."""
    seqs = np.concatenate([rows[LEFT].seq, rows[RIGHT].seq])
    counts = np.concatenate([matches[LEFT].counts(), matches[RIGHT].counts()])
    order = np.argsort(seqs, kind="stable")
    total = np.concatenate([[0], np.cumsum(counts[order])])
    result: Int64 = total[np.searchsorted(seqs[order], places, side="left")]
    return result
