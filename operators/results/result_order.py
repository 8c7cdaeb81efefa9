"""Puts matches in result order.

Results are ordered by the later row's sequence number, then by the earlier row's (docs/semantics.md, Order of results).
In a self-join, of the two directions of one pair the one with the later row on the left comes first. Each element
answers with the positions it knows, in order within each probe row; here the answers of all elements become one list
of pairs. Weaker orderings (`orderings`) skip the sorting that they do not promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from indexes import Matches, frozen, kernel

Int64 = npt.NDArray[np.int64]

_CONSECUTIVE: Int64 = frozen(np.empty(0, np.int64))


@dataclass(frozen=True)
class Answer:
    """The answer of input number `origin` to probe rows of one side, the first at position `first`.

    rows: the positions of the rows, ascending, of an element that gets some of a step's rows; None: consecutive ones.
    """

    origin: int
    first: int
    matches: Matches
    rows: Int64 | None = None

    @property
    def end(self) -> int:
        """The position after the last row's."""
        return self.first + len(self.matches) if self.rows is None else int(self.rows[-1]) + 1

    @property
    def row_positions(self) -> Int64:
        """The position of each row. Cost: O(rows) where they are consecutive."""
        return np.arange(self.first, self.end) if self.rows is None else self.rows

    @property
    def listed_rows(self) -> Int64:
        """The positions of the rows for kernels: none where they are consecutive."""
        return _CONSECUTIVE if self.rows is None else frozen(self.rows)

    def with_matches(self, matches: Matches) -> Answer:
        """Other matches of the same rows."""
        return Answer(self.origin, self.first, matches, self.rows)

    def filled(self) -> Answer:
        """The same answer to consecutive rows; those between its own have no matches. Cost: O(positions spanned)."""
        if self.rows is None:
            return self
        counts = np.zeros(self.end - self.first + 1, np.int64)
        counts[1 + self.rows - self.first] = np.diff(self.matches.offsets)
        return Answer(self.origin, self.first, Matches(np.cumsum(counts), self.matches.positions))

    def split(self, position: int) -> tuple[Answer, Answer]:
        """The answers to the rows before `position`, and to the others."""
        rows = position - self.first if self.rows is None else int(np.searchsorted(self.rows, position))
        offsets, positions = self.matches.offsets, self.matches.positions
        cut = offsets[rows]
        before, after = Matches(offsets[: rows + 1], positions[:cut]), Matches(offsets[rows:] - cut, positions[cut:])
        if self.rows is None:
            return Answer(self.origin, self.first, before), Answer(self.origin, position, after)
        return (
            Answer(self.origin, self.first, before, self.rows[:rows]),
            Answer(self.origin, int(self.rows[rows]), after, self.rows[rows:]),
        )


class WaitingAnswers:
    """Answers to one side's rows that have not been emitted."""

    def __init__(self) -> None:
        self._answers: list[Answer] = []

    def append(self, answer: Answer) -> None:
        self._answers.append(answer)

    def holds(self, origin: int) -> bool:
        """Whether an answer of that input waits."""
        return any(answer.origin == origin for answer in self._answers)

    @property
    def first(self) -> int | None:
        """The smallest position with an answer; None when nothing waits."""
        return min((answer.first for answer in self._answers), default=None)

    def take(self, end: int) -> list[Answer]:
        """Remove the answers to the rows before position `end`, in order of arrival."""
        taken, kept = [], []
        for answer in self._answers:
            if answer.end <= end:
                taken.append(answer)
            elif answer.first >= end:
                kept.append(answer)
            else:
                before, after = answer.split(end)
                taken.append(before)
                kept.append(after)
        self._answers = kept
        return taken


def merge_answers(answers: Iterable[Answer], first: int, end: int, ordered: bool) -> Matches:
    """Merge all answers to the rows at positions [first, end); a row without an answer has no matches.

    ordered: sort by position within each row, as each origin's answers are. They are merged two by two, or row by row
             where each element has answered only some of the rows.
    Cost: O(matches), times the logarithm of the number of origins when ordered.
    """
    answers = list(answers)
    if not ordered:
        return _gather(answers, first, end)
    if any(answer.rows is not None for answer in answers):
        filled = [answer for answer in answers if len(answer.matches.positions)]
        gathered = _gather(filled, first, end)
        if len(filled) > 1:  # else they are in order, and may be the answer's own
            _merge_runs(frozen(gathered.offsets), gathered.positions)
        return gathered
    by_origin: dict[int, list[Answer]] = {}
    for answer in answers:
        if len(answer.matches.positions):
            by_origin.setdefault(answer.origin, []).append(answer)
    merged = [_gather(parts, first, end) for parts in by_origin.values()]
    while len(merged) > 1:
        odd = merged[len(merged) // 2 * 2 :]
        merged = [_merge_two(one, other) for one, other in zip(merged[::2], merged[1::2], strict=False)] + odd
    return merged[0] if merged else Matches.empty(end - first)


class SideAnswers:
    """All answers to the rows of one side at positions [first, end).

    ordered: each origin's positions ascend within a row, and so shall those of all.
    """

    def __init__(self, parts: Sequence[Answer], first: int, end: int, ordered: bool) -> None:
        self.parts = parts
        self._first = first
        self._end = end
        self._ordered = ordered

    @cached_property
    def merged(self) -> Matches:
        """The matches of all of them. Cost: as `merge_answers`, once."""
        return merge_answers(self.parts, self._first, self._end, self._ordered)

    @property
    def as_one(self) -> Sequence[Answer]:
        """One answer in the place of all."""
        return [Answer(0, self._first, self.merged)]


def pair_up(
    seqs: tuple[Int64, Int64], firsts: tuple[int, int], matches: tuple[Matches, Matches], interleave: bool
) -> tuple[Int64, Int64]:
    """Return (left positions, right positions) of all pairs, in result order.

    seqs, firsts: the sequence numbers of each side's probe rows, and the position of the first of them.
    interleave:   within one sequence number (self-join) merge the two directions by position.
    """
    left, right = matches
    if not len(right.positions):
        return later_rows(firsts[0], left), left.positions
    if not len(left.positions):
        return right.positions, later_rows(firsts[1], right)
    total = len(left.positions) + len(right.positions)
    left_positions, right_positions = np.empty(total, np.int64), np.empty(total, np.int64)
    _pair_up(
        frozen(seqs[0]),
        frozen(seqs[1]),
        firsts[0],
        firsts[1],
        frozen(left.offsets),
        frozen(left.positions),
        frozen(right.offsets),
        frozen(right.positions),
        interleave,
        left_positions,
        right_positions,
    )
    return left_positions, right_positions


def later_rows(first: int, matches: Matches) -> Int64:
    """The position of the probe row of each match, where the first probe row is at `first`. Cost: O(rows + matches)."""
    return np.repeat(np.arange(first, first + len(matches)), np.diff(matches.offsets))


def pairs_of(side: int, answer: Answer) -> tuple[Int64, Int64]:
    """The left and the right positions of the pairs of an answer to rows of a side. Cost: O(rows + matches)."""
    later = np.repeat(answer.row_positions, np.diff(answer.matches.offsets))
    earlier = answer.matches.positions
    return (earlier, later) if side else (later, earlier)


def _gather(answers: Sequence[Answer], first: int, end: int) -> Matches:
    """Each row's matches together, in the order of the answers."""
    if len(answers) == 1 and answers[0].rows is None and answers[0].first == first and answers[0].end == end:
        return answers[0].matches
    offsets = np.zeros(end - first + 1, np.int64)
    for answer in answers:
        if answer.rows is None:
            offsets[1 + answer.first - first : 1 + answer.end - first] += np.diff(answer.matches.offsets)
        else:
            offsets[1 + answer.rows - first] += np.diff(answer.matches.offsets)
    np.cumsum(offsets, out=offsets)
    positions = np.empty(offsets[-1], np.int64)
    cursor = offsets[:-1].copy()
    for answer in answers:
        own = frozen(answer.matches.offsets), frozen(answer.matches.positions)
        if answer.rows is None:
            _append_rows(*own, cursor[answer.first - first : answer.end - first], positions)
        else:
            _append_listed_rows(*own, frozen(answer.rows), first, cursor, positions)
    return Matches(offsets, positions)


def _merge_two(one: Matches, other: Matches) -> Matches:
    positions = np.empty(len(one.positions) + len(other.positions), np.int64)
    _merge_rows(frozen(one.offsets), frozen(one.positions), frozen(other.offsets), frozen(other.positions), positions)
    return Matches(one.offsets + other.offsets, positions)


@kernel
def _append_rows(offsets: Int64, positions: Int64, cursor: Int64, target: Int64) -> None:
    for row in range(cursor.size):
        place = cursor[row]
        for source in range(offsets[row], offsets[row + 1]):
            target[place] = positions[source]
            place += 1
        cursor[row] = place


@kernel
def _append_listed_rows(
    offsets: Int64, positions: Int64, rows: Int64, first: int, cursor: Int64, target: Int64
) -> None:
    for number in range(rows.size):
        row = rows[number] - first
        place = cursor[row]
        for source in range(offsets[number], offsets[number + 1]):
            target[place] = positions[source]
            place += 1
        cursor[row] = place


@kernel
def _merge_runs(offsets: Int64, positions: Int64) -> None:
    """Sort within each row, whose positions are ascending runs one behind the other; most rows are one run.

    A row with several runs merges the first two, then the result with the next, and so on with few; each pass over the
    row halves the number of its runs.

        3 9 | 1 4 | 2        1 3 4 9 | 2        1 2 3 4 9
    """
    spare = np.empty(0, np.int64)
    for row in range(offsets.size - 1):
        begin, end = offsets[row], offsets[row + 1]
        sorted_to = begin + 1
        while sorted_to < end and positions[sorted_to - 1] <= positions[sorted_to]:
            sorted_to += 1
        if sorted_to >= end:
            continue
        if spare.size < end - begin:
            spare = np.empty(2 * (end - begin), np.int64)
        runs = 2
        while runs > 1:
            runs = 0
            at = begin
            while at < end:
                middle = at + 1
                while middle < end and positions[middle - 1] <= positions[middle]:
                    middle += 1
                stop = min(middle + 1, end)
                while stop < end and positions[stop - 1] <= positions[stop]:
                    stop += 1
                a, b, place = at, middle, 0
                while a < middle and b < stop:
                    if positions[a] <= positions[b]:
                        spare[place] = positions[a]
                        a += 1
                    else:
                        spare[place] = positions[b]
                        b += 1
                    place += 1
                while a < middle:
                    spare[place] = positions[a]
                    a += 1
                    place += 1
                for source in range(place):  # what is left of the second run is in its place
                    positions[at + source] = spare[source]
                at = stop
                runs += 1


@kernel
def _merge_rows(a_offsets: Int64, a_positions: Int64, b_offsets: Int64, b_positions: Int64, target: Int64) -> None:
    """Merge row by row, in blocks: cores that store in turn interleave at random, where a branch per match would be
    mispredicted; elements that hold segments have long runs, which are copied a block at a time.
    """
    one, block = np.uint64(1), np.uint64(8)
    at = np.uint64(0)
    for row in range(a_offsets.size - 1):
        a, a_end = np.uint64(a_offsets[row]), np.uint64(a_offsets[row + 1])
        b, b_end = np.uint64(b_offsets[row]), np.uint64(b_offsets[row + 1])
        while a + block <= a_end and b + block <= b_end:
            if a_positions[a + block - one] <= b_positions[b]:
                for step in range(block):
                    target[at + step] = a_positions[a + step]
                a += block
            elif b_positions[b + block - one] <= a_positions[a]:
                for step in range(block):
                    target[at + step] = b_positions[b + step]
                b += block
            else:
                for step in range(block):
                    from_a = a_positions[a] <= b_positions[b]
                    target[at + step] = a_positions[a] if from_a else b_positions[b]
                    a += np.uint64(from_a)
                    b += one - np.uint64(from_a)
            at += block
        while a < a_end and b < b_end:
            from_a = a_positions[a] <= b_positions[b]
            target[at] = a_positions[a] if from_a else b_positions[b]
            a += np.uint64(from_a)
            b += one - np.uint64(from_a)
            at += one
        for source in range(a, a_end):
            target[at] = a_positions[source]
            at += one
        for source in range(b, b_end):
            target[at] = b_positions[source]
            at += one


@kernel
def _pair_up(
    left_seq: Int64,
    right_seq: Int64,
    left_first: int,
    right_first: int,
    left_offsets: Int64,
    left_matches: Int64,
    right_offsets: Int64,
    right_matches: Int64,
    interleave: bool,
    left_positions: Int64,
    right_positions: Int64,
) -> None:
    lefts, rights = len(left_seq), len(right_seq)
    at = left = right = 0
    while left < lefts or right < rights:
        take_left = left < lefts and (right == rights or left_seq[left] <= right_seq[right])
        take_right = right < rights and (left == lefts or right_seq[right] <= left_seq[left])
        a = left_offsets[left] if take_left else 0
        a_end = left_offsets[left + 1] if take_left else 0
        b = right_offsets[right] if take_right else 0
        b_end = right_offsets[right + 1] if take_right else 0
        if interleave and take_left and take_right:
            while a < a_end and b < b_end:
                if left_matches[a] <= right_matches[b]:  # the later row on the left first
                    left_positions[at] = left_first + left
                    right_positions[at] = left_matches[a]
                    a += 1
                else:
                    left_positions[at] = right_matches[b]
                    right_positions[at] = right_first + right
                    b += 1
                at += 1
        for source in range(a, a_end):
            left_positions[at] = left_first + left
            right_positions[at] = left_matches[source]
            at += 1
        for source in range(b, b_end):
            left_positions[at] = right_matches[source]
            right_positions[at] = right_first + right
            at += 1
        if take_left:
            left += 1
        if take_right:
            right += 1
