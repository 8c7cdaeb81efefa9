"""Probe many blocks of one window at once, or count in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes.kernels.columns import EVERYWHERE, Interval, Live, Matches
from indexes.permutations.permutation_offset import PermutationOffsetJoin
from indexes.permutations.permutation_search import larger, thread_scratch, written
from indexes.permutations.short_search import DONE, TOO_LONG, by_probe_row, short_search


def probe_blocks(
    limit: int, blocks: Sequence[PermutationOffsetJoin], intervals: Sequence[Interval], live: Live, *, ordered: bool
) -> Matches | None:
    """The matches of a probe batch with all blocks, given in position order; None if there are more than `limit`.

    Two dimensions are first tried with `short_search`, all blocks in one call. Blocks that it does not suit are probed
    one by one. Cost: the sum over the blocks.
    """
    if not len(live):
        return Matches.empty(0)
    blocks = _met(blocks, live)
    if not blocks:
        return Matches.empty(len(live))
    if _suits_short(blocks, intervals):
        matches, suited = _probe_short(limit, blocks, intervals, live, ordered)
        if suited:
            return matches
    answers, left = [], limit
    for block in blocks:
        answer = block.answer_within(left, intervals, live, ordered=ordered)
        if answer is None:
            return None
        left -= len(answer.positions) if isinstance(answer, Matches) else int(answer.counts.sum())
        answers.append(answer)
    return written(answers)


def count_blocks(blocks: Sequence[PermutationOffsetJoin], intervals: Sequence[Interval], live: Live) -> np.ndarray:
    """The number of each probe row's matches with all blocks, given in position order.

    Two dimensions are tried with `short_search` here, too: few matches are counted fastest by finding them.
    Cost: the sum over the blocks.
    """
    counts = np.zeros(len(live), np.int64)
    if not len(live):
        return counts
    blocks = _met(blocks, live)
    if _suits_short(blocks, intervals):
        matches, suited = _probe_short(EVERYWHERE, blocks, intervals, live, False)
        if suited:
            assert matches is not None, "there is no limit to exceed"
            return matches.counts()
    for block in blocks:
        counts += block.count(intervals, live)
    return counts


def _met(blocks: Sequence[PermutationOffsetJoin], live: Live) -> list[PermutationOffsetJoin]:
    """The blocks in which any probe row (of at least one) may meet a row."""
    least_first, _, _, greatest_end = live.extent
    return [each for each in blocks if each.end_position > least_first and each.first_position < greatest_end]


def _suits_short(blocks: Sequence[PermutationOffsetJoin], intervals: Sequence[Interval]) -> bool:
    positive = len(intervals) == 2 and not any(one.negated for one in intervals)
    return positive and all(each.suits_short for each in blocks)


def _probe_short(
    limit: int, blocks: Sequence[PermutationOffsetJoin], intervals: Sequence[Interval], live: Live, ordered: bool
) -> tuple[Matches | None, bool]:
    """The matches, or None if there are too many; and whether `short_search` suited all blocks."""
    blocks = [each for each in blocks if len(each.runs[0]) and len(each.runs[1])]
    bounds, partner_bounds = intervals
    probes = len(bounds)
    if not blocks:
        return Matches.empty(probes), True
    table = np.array([each.short_fields(bounds, partner_bounds, live) for each in blocks], np.int64)
    scratch, words = thread_scratch(max(each.rows for each in blocks), ordered)
    counts = np.empty((len(blocks), probes), np.int32)
    found = np.empty(min(2 * probes + 1024, limit), np.int64)
    state = np.zeros(4, np.int64)
    while True:
        outcome = short_search(
            table, state, counts, found, scratch, words, bounds.low, bounds.high, partner_bounds.low,
            partner_bounds.high, *partner_bounds.inner, live.start, live.end, ordered,
        )  # fmt: skip
        if outcome == DONE:
            break
        if outcome == TOO_LONG:
            blocks[int(state[0])].give_up_short()
            return None, False
        if state[3] > limit:
            return None, True
        found = larger(found, int(state[2]), min(2 * int(state[3]), limit))
    total = int(state[2])
    offsets, positions = np.empty(probes + 1, np.int64), np.empty(total, np.int64)
    by_probe_row(counts, found[:total], offsets, positions)
    return Matches(offsets, positions), True
