"""Answering steps in pieces whose matches fit in memory, by one thread or several.

Answers are cut where they would become too large, with a punctuation after each piece. So memory is bounded however
many matches there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from indexes import Matches
from operators.engines.shared.steps import Step
from operators.engines.shared.work_items import WorkItems, work_through
from operators.protocol.answers import counts_batch, matches_batch
from operators.protocol.columns import Int64
from operators.protocol.element_rows import ElementRows
from operators.protocol.sides import LEFT, RIGHT
from topology import Emit

MOST_MATCHES = 1 << 22
"""Matches that one element may hold for one side before it emits them."""

UNLIMITED = int(np.iinfo(np.int64).max)

Probe = Callable[[int, ElementRows, int], Matches | None]
"""(side of the probe rows, rows, most matches) -> their matches, or None if there are more than that."""

Count = Callable[[int, ElementRows], Int64]
"""(side of the probe rows, rows) -> the number of matches of each."""

Answer = list[tuple[int, ElementRows, Matches]]
"""The matches of a piece: side, rows of that side, their matches."""


class Answering:
    """Probes with the rows of steps, piece by piece, and emits the answers in order.

    It remembers the size of a piece: halved when a piece has too many matches, doubled when it has few.

    most:    matches of one side that a piece may have; a single row is answered whole, however many it has.
    threads: threads that probe at the same time. `probe` and `count` must then be safe to call from several.
    """

    def __init__(self, most: int = MOST_MATCHES, *, threads: int = 1) -> None:
        self._most = most
        self._threads = threads
        self._piece = 1 << 20

    def answer(self, step: Step, probe: Probe, count: Count | None = None) -> Iterator[Emit]:
        """Yield the matches of both sides, or with `count` their numbers; after each piece its punctuation."""
        return self.answer_all([step], probe, count)

    def answer_all(self, steps: Sequence[Step], probe: Probe, count: Count | None = None) -> Iterator[Emit]:
        """As `answer`, for consecutive steps."""
        if count is not None:
            # counts always fit in memory
            for counts in work_through(steps, lambda step: list(_counts(step, count)), self._threads):
                yield from counts
            return
        if self._threads == 1 and len(steps) == 1 and steps[0].size <= self._piece:
            answer = self._probe(steps[0], probe)
            if answer is not None:  # the usual case: one thread, one piece, no queue
                yield from self._emitted(steps[0], answer)
                return
            steps = self._halves(steps[0])
        pieces: WorkItems[Step, Answer | None] = WorkItems(part for step in steps for part in self._cut(step))
        # one thread emits each piece before it probes the next; several may be ahead of the first piece
        ahead = self._most if self._threads > 1 else 1
        while len(pieces):
            pieces.work(lambda piece: self._probe(piece, probe), self._threads, self._weight, ahead)
            for piece, answer in pieces.completed(self._weight):
                if answer is None:
                    pieces.put_first(self._halves(piece))
                    pieces.replace(self._cut)
                    break
                yield from self._emitted(piece, answer)

    def _emitted(self, piece: Step, answer: Answer) -> Iterator[Emit]:
        """Emit the answer of a piece; let pieces grow while they have few matches."""
        for side, rows, matches in answer:
            yield Emit(matches_batch(side, rows.first, matches, rows.positions))
        most_found = max((len(matches.positions) for _, _, matches in answer), default=0)
        if 4 * most_found < self._most and 2 * piece.size > self._piece:
            self._piece *= 2
        yield Emit(piece.last)

    def _halves(self, piece: Step) -> tuple[Step, Step]:
        """Split a piece that had too many matches, and remember the size."""
        middle = piece.middle
        assert middle is not None, "a single row is answered whole"
        self._piece = max(1, piece.size // 2)
        return piece.split(middle)

    def _cut(self, step: Step) -> Iterator[Step]:
        """Cut a step that would have too many matches if its rows have as many as those before."""
        todo = [step]
        while todo:
            piece = todo.pop()
            middle = piece.middle
            if piece.size > self._piece and middle is not None:
                todo += reversed(piece.split(middle))
            else:
                yield piece

    def _weight(self, answer: Answer | None) -> int:
        """The matches held. A piece with too many stops the threads: the pieces after it are about to be cut too."""
        return self._most if answer is None else sum(len(matches.positions) for _, _, matches in answer)

    def _probe(self, piece: Step, probe: Probe) -> Answer | None:
        """The matches of a piece, None if they are too many."""
        most = self._most if piece.size > 1 or piece.middle is not None else UNLIMITED
        answer: Answer = []
        for side in (LEFT, RIGHT):
            rows = piece.rows[side]
            if rows is not None and len(rows):
                matches = probe(side, rows, most)
                if matches is None:
                    return None
                answer.append((side, rows, matches))
        return answer


def _counts(step: Step, count: Count) -> Iterator[Emit]:
    for side in (LEFT, RIGHT):
        rows = step.rows[side]
        if rows is not None and len(rows):
            yield Emit(counts_batch(side, rows.first, count(side, rows), rows.positions))
    yield Emit(step.last)
