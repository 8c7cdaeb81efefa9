"""What each ordering promises, result by result, and that the weaker ones do let answers overtake each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import Matches, frozen
from operators import CountWindow, JoinError, SPOJoin, StreamJoin
from operators.engines.handshake_join.description import HandshakeJoin
from operators.engines.shared.engine import Engine
from operators.engines.split_join.collection_tree import Merger
from operators.engines.split_join.description import SplitJoin
from operators.intake.gate_task import SEQ
from operators.protocol.answers import matches_batch
from operators.protocol.limits import Limits
from operators.query.orderings import EveryK, Ordering, open_until, ordering_of
from operators.results.collector import Collector, CollectorTask
from operators.results.result_order import Answer, merge_answers
from operators.values.selection import Selection
from tests.operators.oracle_check import inputs_of, join_of
from tests.operators.results.told_answers import told
from tests.operators.seeded_run import run_seeded
from tests.oracle import Expected, assert_same_result, assert_same_rows
from tests.strategies import JoinCase, join_cases
from topology import Batch, Emit, LocalRuntime, Origin, Punctuation, Task, TaskContext

ROUTER, FAST, SLOW = Origin("router", 0, 0), Origin("join-core", 0, 1), Origin("join-core", 1, 2)

seeds = st.integers(0, 10**6)
orderings = st.sampled_from(["strict", "outer", "none"]) | st.integers(1, 12).map(EveryK)


def assert_ordered(ordering: Ordering, actual: pa.Table, expected: Expected) -> None:
    """The rows are the oracle's, each as often, and come as the ordering promises."""
    assert_same_rows(actual, expected.table)
    if ordering == "strict":
        assert_same_result(actual, expected.table)
        return
    left, right = (name for name in expected.table.column_names if name.endswith(".id"))
    later = {pair: seq for pair, (_, _, seq) in zip(_pairs(expected.table, left, right), expected.triples, strict=True)}
    seqs = [later[pair] for pair in _pairs(actual, left, right)]
    size = {"outer": 1, "none": 10**9}.get(ordering, 0) if isinstance(ordering, str) else ordering.k
    groups = [seq // size for seq in seqs]
    assert groups == sorted(groups)


def _pairs(table: pa.Table, left: str, right: str) -> list[tuple[Any, Any]]:
    return list(zip(table[left].to_pylist(), table[right].to_pylist(), strict=True))


@st.composite
def engines(draw: st.DrawFn) -> Engine:
    cores = draw(st.integers(1, 7))
    return draw(
        st.sampled_from(
            [
                SplitJoin(cores=cores, fanout=draw(st.integers(2, 4))),
                HandshakeJoin(cores=cores),
                SPOJoin(elements=1 + cores % 4, merge_interval=5),
            ]
        )
    )


@given(join_cases(full_select=True, max_rows=8, max_sources=2), engines(), orderings, st.integers(1, 9), seeds)
@settings(max_examples=40)
def test_every_ordering_keeps_its_promise_under_any_timing(
    case: JoinCase, engine: Engine, ordering: Ordering, step_rows: int, seed: int
) -> None:
    join = join_of(case, engine, step_rows=step_rows, ordering=ordering)
    batches = run_seeded(join.topology(), case.batches(), seed)
    expected = case.expected()
    if not batches:
        assert not expected.triples
        return
    assert_ordered(ordering, pa.Table.from_batches(batches), expected)


@given(join_cases(full_select=True, max_rows=40, max_sources=2), engines(), orderings, st.integers(1, 30))
@settings(max_examples=20)
def test_every_ordering_keeps_its_promise_on_the_embedded_runtime(
    case: JoinCase, engine: Engine, ordering: Ordering, step_rows: int
) -> None:
    join = join_of(case, engine, step_rows=step_rows, ordering=ordering)
    assert_ordered(ordering, join.collect(inputs_of(case), LocalRuntime()), case.expected())


def test_a_whole_number_means_groups_of_so_many() -> None:
    assert ordering_of(5) == EveryK(5)
    assert ordering_of(EveryK(3)) == EveryK(3)
    assert StreamJoin("R", "S", "R.x = S.x", CountWindow(5), ordering=7).resolved.ordering == EveryK(7)


@pytest.mark.parametrize("wrong", [0, -3, True, "inner", 1.5, None])
def test_other_orderings_are_refused(wrong: Any) -> None:
    with pytest.raises(JoinError, match=r"ordering must be|k must be"):
        StreamJoin("R", "S", "R.x = S.x", CountWindow(5), ordering=wrong)


def test_what_may_be_sent_before_all_have_answered() -> None:
    assert [open_until("strict", 6), open_until("outer", 6)] == [6, 6]
    assert [open_until(EveryK(5), complete) for complete in (-1, 0, 3, 4, 5)] == [4, 4, 4, 9, 9]
    assert open_until("none", 6) > 10**18


class Driven:
    """A task that is fed by hand; its results are noted as (left id, right id) pairs, or as messages."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.sent: list[Batch | Punctuation] = []

    def give(self, origin: Origin, *messages: Batch | Punctuation) -> list[tuple[int, int]]:
        """Hand over messages; return the pairs that come out."""
        before = len(self.sent)
        for message in messages:
            assert not self.task.blocked(origin)
            self._note(
                self.task.on_batch(message, origin)
                if isinstance(message, Batch)
                else self.task.on_punctuation(message, origin)
            )
            self.task.check_invariants()
        pairs: list[tuple[int, int]] = []
        for sent in self.sent[before:]:
            if isinstance(sent, Batch) and sent.stream == "default":
                pairs += zip(*(column.to_pylist() for column in sent.rows.columns), strict=True)
        return pairs

    def _note(self, actions: Iterable[Emit]) -> None:
        for emit in actions:
            assert isinstance(emit.message, Batch | Punctuation)
            self.sent.append(emit.message)


def collector(ordering: Ordering) -> Driven:
    """A combiner fed by a router and two cores, which has got one S row (seq 0) and six R rows (seq 1 to 6)."""
    description = Collector(Selection.of(("R", "S"), ["R.id", "S.id"]), ordering)
    task = description.build(TaskContext("combiner", origins=(ROUTER, FAST, SLOW)))
    assert isinstance(task, CollectorTask)
    driven = Driven(task)
    driven.give(ROUTER, Limits().to_batch(), payload("right", [100], [0]), payload("left", list(range(6)), range(1, 7)))
    driven.give(ROUTER, Punctuation(6))
    return driven


def payload(side: str, ids: list[int], seqs: Iterable[int]) -> Batch:
    return Batch(f"payload.{side}", pa.record_batch({"id": ids, SEQ: pa.array(seqs, pa.int64())}), born=1.0)


def answer(*matches: list[int], first: int = 0) -> Batch:
    """The answer to consecutive R rows."""
    offsets = np.cumsum([0, *map(len, matches)])
    positions = np.array([position for row in matches for position in row], np.int64)
    return matches_batch(0, first, Matches(offsets, positions))


HIT: list[int] = [0]


@pytest.mark.parametrize("ordering", ["strict", "outer"])
def test_strict_and_outer_order_wait_for_every_element(ordering: Ordering) -> None:
    driven = collector(ordering)
    assert not driven.give(FAST, answer(HIT, [], HIT), Punctuation(3))
    assert driven.task.blocked(FAST)
    assert not driven.give(SLOW, answer([], HIT, []))
    assert driven.give(SLOW, Punctuation(3)) == [(0, 100), (1, 100), (2, 100)]
    assert not driven.task.blocked(FAST)


def test_rows_count_as_answered_only_when_their_results_have_been_emitted() -> None:
    driven = collector("strict")
    driven.give(FAST, answer(HIT, [], HIT), Punctuation(3))
    driven.give(SLOW, answer([], [], []))
    emitted = iter(driven.task.on_punctuation(Punctuation(3), SLOW))
    assert isinstance(next(emitted).message, Batch)
    assert driven.task.metrics()["answered"] == 0
    assert next(emitted, None) is None
    assert driven.task.metrics()["answered"] == 4


def test_a_step_is_punctuated_once_when_all_its_parts_are_answered() -> None:
    driven = collector("strict")
    for element in (FAST, SLOW):
        driven.give(element, Punctuation(3))
    assert not any(isinstance(sent, Punctuation) for sent in driven.sent)
    for element in (FAST, SLOW):
        driven.give(element, Punctuation(6))
    assert [sent for sent in driven.sent if isinstance(sent, Punctuation)] == [Punctuation(6)]


def test_without_an_order_one_element_overtakes_another() -> None:
    driven = collector("none")
    assert driven.give(FAST, answer(HIT, [], HIT, [], [], HIT)) == [(0, 100), (2, 100), (5, 100)]
    driven.give(FAST, Punctuation(6))
    assert not driven.task.blocked(FAST)
    assert driven.give(SLOW, answer([], HIT), Punctuation(2)) == [(1, 100)]


def test_without_an_order_answers_wait_for_their_payload_only() -> None:
    driven = collector("none")
    assert not driven.give(FAST, answer(HIT, first=6))
    assert not driven.task.blocked(ROUTER)
    assert not driven.give(ROUTER, Limits().to_batch(), payload_at(6, 7))
    assert driven.give(ROUTER, Punctuation(7)) == [(6, 100)]


def payload_at(position: int, seq: int) -> Batch:
    batch = payload("left", [position], [seq])
    return Batch(batch.stream, batch.rows, first=position, born=1.0)


def test_an_element_overtakes_within_a_group_of_k_only() -> None:
    driven = collector(EveryK(4))  # groups of seqs 0..3 and 4..7: R rows 0..2 and 3..5
    assert driven.give(FAST, answer(HIT, [], HIT, HIT, HIT, HIT)) == [(0, 100), (2, 100)]
    assert not driven.task.blocked(FAST), "it has not punctuated: the others cannot go on without it"
    driven.give(FAST, Punctuation(6))
    assert driven.task.blocked(FAST), "what it has said about the next group waits"
    assert driven.give(SLOW, answer([], HIT), Punctuation(2)) == [(1, 100)]
    assert driven.task.blocked(FAST)
    later = driven.give(SLOW, answer([], [], HIT, first=2), Punctuation(5))
    assert Counter(later) == Counter([(3, 100), (4, 100), (5, 100), (4, 100)])
    assert not driven.task.blocked(FAST)


def merger(ordering: Ordering, orders: bool = False) -> Driven:
    context = TaskContext("merger-1", origins=(Origin("a", 0, 0), Origin("b", 0, 1)))
    return Driven(Merger(ordering, orders=orders).build(context))


A, B = Origin("a", 0, 0), Origin("b", 0, 1)


@pytest.mark.parametrize(("orders", "sent"), [(True, [[[0, 1, 2]]]), (False, [[[0, 2]], [[1]]])])
def test_an_aligning_merger_sends_what_all_have_answered(orders: bool, sent: list[list[list[int]]]) -> None:
    driven = merger("strict", orders)
    driven.give(A, answer([0, 2], [4]), Punctuation(9))
    assert driven.task.blocked(A)
    assert not driven.sent
    driven.give(B, answer([1]), Punctuation(5))
    *batches, last = driven.sent
    assert [batch.rows.column(0).to_pylist() for batch in batches if isinstance(batch, Batch)] == sent
    assert last == Punctuation(5)


def test_a_merger_without_an_order_passes_on_at_once() -> None:
    driven = merger("none")
    driven.give(A, answer([0, 2]))
    driven.give(A, Punctuation(9))
    assert not driven.task.blocked(A)
    driven.give(A, answer([4], first=1))
    assert [isinstance(message, Batch) for message in driven.sent] == [True, True]
    driven.give(B, Punctuation(5))
    assert driven.sent[2:] == [Punctuation(5)]


def test_a_merger_holds_back_what_lies_behind_the_open_group() -> None:
    driven = merger(EveryK(5))
    driven.give(A, answer([0]), Punctuation(3))
    assert len(driven.sent) == 1
    driven.give(A, answer([0], first=1), Punctuation(7))  # rows of the groups 0..4 and 5..9
    assert len(driven.sent) == 1
    assert driven.task.blocked(A)
    driven.give(B, answer([1]), Punctuation(4))
    firsts = [message.first if isinstance(message, Batch) else message for message in driven.sent]
    assert firsts == [0, 0, Punctuation(4), 1]
    assert not driven.task.blocked(A)


@given(st.integers(0, 10**6), st.integers(1, 9))
def test_merged_answers_are_all_answers_in_order(seed: int, origins: int) -> None:
    rng = np.random.default_rng(seed)
    rows, first = int(rng.integers(1, 6)), int(rng.integers(0, 5))
    expected: list[list[int]] = [[] for _ in range(rows)]
    answers = []
    runs = int(rng.choice([1, 7, 40]))
    for origin in range(origins):
        at = 0
        while at < rows:  # each origin speaks in pieces
            count = int(rng.integers(1, rows - at + 1))
            matches = []
            for row in range(at, at + count):
                positions = np.flatnonzero(rng.random(200) < rng.choice([0, 0.1, 0.9]))
                own = positions[positions // runs % origins == origin]
                expected[row] += own.tolist()
                matches.append(own)
            answers.append(told(rng, origin, first + at, matches))
            at += count
    for ordered in (True, False):
        merged = merge_answers(answers, first, first + rows, ordered)
        found = [merged.positions[a:b].tolist() for a, b in zip(merged.offsets, merged.offsets[1:], strict=False)]
        if ordered:
            assert found == [sorted(row) for row in expected]
        else:
            assert [sorted(row) for row in found] == [sorted(row) for row in expected]


def test_the_only_answer_with_matches_is_taken_as_it_is() -> None:
    """An element's positions may be read-only, and another element may have answered without any."""
    only = Answer(0, 5, Matches(np.array([0, 2, 3]), frozen(np.array([1, 4, 2]))))
    other = Answer(1, 6, Matches.empty(1), np.array([6]))
    merged = merge_answers([only, other], 5, 7, ordered=True)
    assert merged is only.matches
