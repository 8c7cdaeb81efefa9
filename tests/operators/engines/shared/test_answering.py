"""Answers come in pieces that fit in memory, whatever the number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexes import Live, Matches
from operators.engines.shared.answering import Answering
from operators.engines.shared.steps import Step
from operators.protocol.answers import counts_of, matches_of
from operators.protocol.element_rows import ElementRows
from operators.protocol.limits import Limits
from operators.protocol.stream_ids import stream_of
from topology import Batch, Punctuation


def step_of(sides: list[bool], begin: int, firsts: tuple[int, int]) -> Step:
    """Rows of the sides in turn, from sequence number `begin` on; a row has as many matches as its number says."""
    rows: list[ElementRows | None] = []
    for side in (0, 1):
        seq = np.array([begin + number for number, is_right in enumerate(sides) if is_right == bool(side)], np.int64)
        rows.append(ElementRows(firsts[side], seq, (), (), Live(seq, seq)) if len(seq) else None)
    return Step(Limits(), (rows[0], rows[1]), Punctuation(begin + len(sides) - 1))


def count(side: int, rows: ElementRows) -> np.ndarray:
    return rows.seq % 7


def probe(side: int, rows: ElementRows, most: int) -> Matches | None:
    offsets = np.concatenate([[0], np.cumsum(count(side, rows))])
    return None if offsets[-1] > most else Matches(offsets, np.arange(offsets[-1]))


@pytest.mark.parametrize("threads", [1, 3])
@given(sides=st.lists(st.booleans(), min_size=1, max_size=60), most=st.integers(1, 12))
def test_pieces_are_small_and_together_the_whole(threads: int, sides: list[bool], most: int) -> None:
    answering = Answering(most, threads=threads)
    firsts = [0, 0]
    for begin in (0, len(sides)):
        step = step_of(sides, begin, (firsts[0], firsts[1]))
        found: list[list[int]] = [[], []]
        ends = []
        for emit in answering.answer(step, probe):
            message = emit.message
            if isinstance(message, Batch):
                side, matches = stream_of(message.stream).side, matches_of(message)
                assert message.first == firsts[side] + len(found[side])
                assert len(matches.positions) <= most or len(matches) == 1
                found[side] += matches.counts().tolist()
            else:
                assert isinstance(message, Punctuation)
                ends.append(message.seq)
        expected = [[] if rows is None else (rows.seq % 7).tolist() for rows in step.rows]
        assert found == expected
        assert ends == sorted(set(ends))
        assert ends[-1] == step.last.seq
        answering_counts = [emit.message for emit in answering.answer(step, probe, count)]
        assert [counts_of(each).tolist() for each in answering_counts if isinstance(each, Batch)] == [
            each for each in expected if each
        ]
        firsts = [firsts[side] + len(expected[side]) for side in (0, 1)]


def test_a_piece_that_was_too_large_is_not_tried_at_that_size_again() -> None:
    tried: list[int] = []

    def noting(side: int, rows: ElementRows, most: int) -> Matches | None:
        tried.append(len(rows))
        return probe(side, rows, most)

    list(Answering(40).answer(step_of([False] * 64, 0, (0, 0)), noting))
    assert tried == [64, 32, 16, *[8] * 8]
