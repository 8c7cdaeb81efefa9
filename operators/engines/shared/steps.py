"""Steps: the rows between two punctuations, taken and answered as a whole.

The router sends a step as limits, rows of either side, punctuation. An element stores the rows of both sides and then
probes: each probe row carries the positions it may meet, so storing first is exact. Answers are cut where they would
become too large, with a punctuation after each piece, so that memory is bounded however many matches there are.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from indexes import Matches
from operators.protocol.answers import counts_batch, matches_batch
from operators.protocol.columns import Int64
from operators.protocol.element_rows import ElementRows
from operators.protocol.limits import Limits
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import StreamId, stream_of
from operators.protocol.streams import JoinStream
from topology import Batch, Emit, Origin, Punctuation, Task

MOST_MATCHES = 1 << 22
"""Matches that one element may hold for one side before it sends them."""

Probe = Callable[[int, ElementRows, int], Matches | None]
"""(side of the probe rows, rows, most matches) -> their matches, or None if there are more than that."""

Count = Callable[[int, ElementRows], Int64]
"""(side of the probe rows, rows) -> the number of matches of each."""


@dataclass(frozen=True)
class Step:
    """What arrived between two punctuations."""

    limits: Limits
    rows: tuple[ElementRows | None, ElementRows | None]
    last: Punctuation

    def split(self, seq: int) -> tuple[Step, Step]:
        """The rows up to and including sequence number `seq`, and the others."""
        before: list[ElementRows | None] = []
        after: list[ElementRows | None] = []
        for rows in self.rows:
            cut = 0 if rows is None else int(np.searchsorted(rows.seq, seq, side="right"))
            before.append(rows.between(0, cut) if rows is not None and cut else None)
            after.append(rows.between(cut, len(rows)) if rows is not None and cut < len(rows) else None)
        return (
            Step(self.limits, (before[LEFT], before[RIGHT]), Punctuation(seq, self.last.born)),
            Step(self.limits, (after[LEFT], after[RIGHT]), self.last),
        )

    @property
    def middle(self) -> int | None:
        """The sequence number in the middle of the rows; None when there is nothing to split."""
        seqs = [rows.seq for rows in self.rows if rows is not None and len(rows)]
        if not seqs:
            return None
        low, high = int(min(each[0] for each in seqs)), int(max(each[-1] for each in seqs))
        return None if low == high else (low + high) // 2


class StepTask(Task):
    """A task that is fed by the router and answers a step at a time."""

    def __init__(self, negated: Sequence[bool]) -> None:
        self._negated = negated
        self._limits = Limits()
        self._rows: list[ElementRows | None] = [None, None]

    @abstractmethod
    def on_step(self, step: Step) -> Iterable[Emit]:
        """Store and answer the rows of a step; send its punctuation."""

    def on_other(self, stream: StreamId, batch: Batch) -> Iterable[Emit]:
        """Take a batch that is not part of a step; only elements with further inputs override this."""
        raise AssertionError(f"{type(self).__name__} takes no {batch.stream}")

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        stream = stream_of(batch.stream)
        match stream.kind:
            case JoinStream.PROBES:
                self._rows[stream.side] = ElementRows.from_batch(batch, self._negated)
            case JoinStream.LIMITS:
                self._limits = Limits.from_batch(batch)
            case _:
                return self.on_other(stream, batch)
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        step = Step(self._limits, (self._rows[LEFT], self._rows[RIGHT]), punctuation)
        self._rows = [None, None]
        return self.on_step(step)


class Answering:
    """Probes the rows of a step in pieces whose matches fit in memory.

    The size of a piece is remembered: halved when a piece has too many matches, doubled when it has few.
    """

    def __init__(self, most: int = MOST_MATCHES) -> None:
        self._most = most
        self._piece = 1 << 20

    def answer(self, step: Step, probe: Probe, count: Count | None = None) -> Iterator[Emit]:
        """Yield the matches of both sides and, after each piece, its punctuation; or counts, if they are asked for."""
        if count is not None:
            yield from answer_counts(step, count)
            return
        todo = [step]
        while todo:
            piece = todo.pop()
            middle = piece.middle
            size = max((len(rows) for rows in piece.rows if rows is not None), default=0)
            if size > self._piece and middle is not None:
                todo += reversed(piece.split(middle))
                continue
            # a single row must be answered whole
            answers = self._probe(piece, probe, self._most if middle is not None else np.iinfo(np.int64).max)
            if answers is None:
                assert middle is not None
                self._piece = max(1, size // 2)
                todo += reversed(piece.split(middle))
                continue
            found = 0
            for side, rows, matches in answers:
                found = max(found, len(matches.positions))
                yield Emit(matches_batch(side, rows.first, matches))
            if 4 * found < self._most and 2 * size > self._piece:
                self._piece *= 2
            yield Emit(piece.last)

    @staticmethod
    def _probe(piece: Step, probe: Probe, most: int) -> list[tuple[int, ElementRows, Matches]] | None:
        answers = []
        for side in (LEFT, RIGHT):
            rows = piece.rows[side]
            if rows is not None and len(rows):
                matches = probe(side, rows, most)
                if matches is None:
                    return None
                answers.append((side, rows, matches))
        return answers


def answer_counts(step: Step, count: Count) -> Iterator[Emit]:
    """Yield the number of matches of each row of both sides, then the punctuation. Counts always fit in memory."""
    for side in (LEFT, RIGHT):
        rows = step.rows[side]
        if rows is not None and len(rows):
            yield Emit(counts_batch(side, rows.first, count(side, rows)))
    yield Emit(step.last)
