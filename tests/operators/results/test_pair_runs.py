"""Pairs as runs are the pairs that `pair_up` lists, in every order, in part and as columns."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.protocol.sides import LEFT, RIGHT
from operators.results.pair_runs import PairRuns, runs_of
from operators.results.payload_store import PayloadStore
from operators.results.probe_rows import ProbeStep, TakenRows
from operators.results.result_order import Answer, merge_answers, pair_up
from tests.operators.results.told_answers import told

LIVE = 60
SCHEMA = pa.schema([("n", pa.int64()), ("b", pa.bool_()), ("t", pa.string()), ("d", pa.decimal128(20, 2))])


class Step:
    """Complete rows of both sides, of two streams or of one, and what several elements have answered to them."""

    def __init__(self, seed: int, self_join: bool) -> None:
        rng = np.random.default_rng(seed)
        rows = int(rng.integers(0, 8)), int(rng.integers(0, 8))
        if self_join:
            rows = rows[0], rows[0]
        self.alternate = bool(rng.integers(0, 2))
        seqs = np.sort(rng.choice(100, sum(rows), replace=False))
        mine = rng.permutation(sum(rows)) < rows[LEFT]
        split = (seqs[: rows[0]], seqs[: rows[0]]) if self_join else (seqs[mine], seqs[~mine])
        first = LIVE + int(rng.integers(0, 5)), LIVE + int(rng.integers(0, 5))
        self.rows = tuple(TakenRows(at, (ProbeStep(at, own, 0.0),)) for at, own in zip(first, split, strict=True))
        self.answers = tuple(self._answers(rng, first[side], len(split[side])) for side in (LEFT, RIGHT))

    def _answers(self, rng: np.random.Generator, first: int, rows: int) -> list[Answer]:
        """Each element answers in pieces; together they hold each position once, each a range or every third."""
        answers = []
        for origin in range(3):
            at = 0
            while at < rows:
                count = int(rng.integers(1, rows - at + 1))
                share = np.arange(LIVE) % 3 == origin if self.alternate else np.arange(LIVE) * 3 // LIVE == origin
                matches = [np.flatnonzero(share & (rng.random(LIVE) < rng.choice([0, 0.1, 0.8]))) for _ in range(count)]
                answers.append(told(rng, origin, first + at, matches))
                at += count
        return [answers[i] for i in rng.permutation(len(answers))]

    def listed(self, ordered: bool) -> list[tuple[int, int]]:
        """All pairs, made by merging all answers to each side."""
        merged = tuple(
            merge_answers(answers, rows.first, rows.first + len(rows.seq), ordered)
            for rows, answers in zip(self.rows, self.answers, strict=True)
        )
        seqs, firsts = [rows.seq for rows in self.rows], [rows.first for rows in self.rows]
        left, right = pair_up((seqs[0], seqs[1]), (firsts[0], firsts[1]), (merged[0], merged[1]), ordered)
        return list(zip(left.tolist(), right.tolist(), strict=True))

    def runs(self, ordered: bool) -> PairRuns | None:
        return runs_of((self.rows[0], self.rows[1]), (self.answers[0], self.answers[1]), ordered)

    def both_directions(self) -> bool:
        """Whether a row of a self-join has pairs as a left and as a right row."""
        met = [
            {
                rows.seq[row - rows.first]
                for answer in answers
                for row, (a, b) in zip(answer.row_positions, pairwise(answer.matches.offsets.tolist()), strict=True)
                if a < b
            }
            for rows, answers in zip(self.rows, self.answers, strict=True)
        ]
        return bool(met[0] & met[1])


@given(st.integers(0, 10**6), st.booleans(), st.booleans())
@settings(max_examples=80)
def test_runs_are_the_pairs_in_their_order(seed: int, self_join: bool, ordered: bool) -> None:
    step = Step(seed, self_join)
    runs = step.runs(ordered)
    if runs is None:
        assert ordered
        assert step.alternate or step.both_directions()
        return
    pairs = list(zip(runs.left.tolist(), runs.right.tolist(), strict=True))
    expected = step.listed(ordered)
    assert sorted(pairs) == sorted(expected)
    if ordered:
        assert pairs == expected
    else:
        seq = {
            (side, rows.first + i): s for side, rows in enumerate(step.rows) for i, s in enumerate(rows.seq.tolist())
        }
        later = [seq[LEFT, left] if left >= LIVE else seq[RIGHT, right] for left, right in pairs]
        assert later == sorted(later)


@given(st.integers(0, 10**6), st.data())
@settings(max_examples=40)
def test_any_part_of_the_runs_shows_the_columns_of_its_pairs(seed: int, data: st.DataObject) -> None:
    runs = Step(seed, False).runs(False)
    assert runs is not None
    rng = np.random.default_rng(seed)
    nulls = data.draw(st.booleans())
    rows = [
        {"n": int(n), "b": bool(n % 3), "t": f"{n}" * (n % 4), "d": None if nulls and n % 5 == 0 else n}
        for n in rng.integers(0, 1000, LIVE + 20).tolist()
    ]
    if nulls:
        rows[3]["n"] = None
    store = PayloadStore(SCHEMA)
    store.append(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    start = data.draw(st.integers(0, len(runs)))
    stop = data.draw(st.integers(start, len(runs)))
    inner = data.draw(st.integers(0, stop - start))
    part = runs.part(start, stop).part(inner, stop)
    for side, positions in ((LEFT, runs.left), (RIGHT, runs.right)):
        wanted = positions[start + inner : stop]
        assert part.positions(side).tolist() == wanted.tolist()
        for name in SCHEMA.names:
            column = store.take_runs(name, side, part)
            column.validate(full=True)
            assert column.type == SCHEMA.field(name).type
            assert column.equals(store.take_column(name, wanted))
