"""Elements that answer with counts count what they would have found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import Engine, HandshakeJoin, IndexJoin, PanJoin, ScaleJoin, SplitJoin, SPOJoin
from operators.element_rows import answer_streams, counts_of, matches_of
from operators.engine import ElementPlan
from operators.merge_policy import MergePolicy
from operators.windows import Window
from tests.operators.seeded_run import run_seeded
from tests.operators.test_join import join_of
from tests.strategies import JoinCase, join_cases
from topology import Batch, Bolt, Emit, Origin, Punctuation, Task, TaskContext, TopologyBuilder

ENGINES: dict[str, Callable[[int], Engine]] = {
    "SPOJoin": lambda cores: SPOJoin(elements=cores, merge_interval=3),
    "SPOJoin, trees": lambda cores: SPOJoin(elements=cores, merge_interval=3, immutable="css-tree"),
    "IndexJoin": lambda cores: IndexJoin(threads=cores, task_rows=2),
    "IndexJoin, chosen": lambda cores: IndexJoin("auto", threads=cores, task_rows=3),
    "ScaleJoin": lambda cores: ScaleJoin(threads=cores),
    "ScaleJoin, grid": lambda cores: ScaleJoin(threads=cores, index="GridIndex"),
    "SplitJoin": lambda cores: SplitJoin(cores=cores, fanout=2),
    "HandshakeJoin": lambda cores: HandshakeJoin(cores=cores),
    "HandshakeJoin, original": lambda cores: HandshakeJoin(cores=cores, low_latency=False, index="RangeTreeWindow"),
}

Sums = defaultdict[tuple[str, int], int]


@dataclass(frozen=True)
class Adding(Bolt):
    """Adds up the answers of all elements by side and position, and passes nothing but the punctuation on."""

    sums: Sums = field(compare=False)

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return answer_streams(counts=False)

    def build(self, context: TaskContext) -> Task:
        return AddingTask(self.sums, len(context.origins))


class AddingTask(Task):
    def __init__(self, sums: Sums, inputs: int) -> None:
        self._sums = sums
        self._reached = [-1] * inputs
        self._complete = -1

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        kind, _, side = batch.stream.partition(".")
        counts = counts_of(batch) if kind == "counts" else matches_of(batch).counts()
        for row, count in enumerate(counts.tolist()):
            self._sums[side, batch.first + row] += count
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        self._reached[origin.index] = punctuation.seq
        if min(self._reached) > self._complete:
            self._complete = min(self._reached)
            yield Emit(Punctuation(self._complete, punctuation.born))


@dataclass(frozen=True)
class Observing(Engine):
    """An engine whose answers are added up instead of collected."""

    engine: Engine
    counts: bool
    sums: Sums = field(compare=False)

    def merge_policy(self, window: Window) -> MergePolicy:
        return self.engine.merge_policy(window)

    def add_elements(self, builder: TopologyBuilder, plan: ElementPlan) -> Sequence[str]:
        names = self.engine.add_elements(builder, replace(plan, counts=self.counts))
        adding = builder.bolt("adding", Adding(self.sums))
        for name in names:
            for stream in answer_streams(self.counts):
                adding.global_grouping(name, stream)
        return ["adding"]


@pytest.mark.parametrize("name", ENGINES)
@settings(max_examples=15, deadline=None)
@given(case=join_cases(max_rows=12), cores=st.sampled_from([1, 2, 3]), step_rows=st.integers(1, 9), seed=st.integers(0))
def test_counts_are_those_of_the_matches(name: str, case: JoinCase, cores: int, step_rows: int, seed: int) -> None:
    engine = ENGINES[name](cores)
    assert engine.can_count
    found = []
    for counts in (False, True):
        sums: Sums = defaultdict(int)
        join = join_of(case, Observing(engine, counts, sums), step_rows=step_rows)
        run_seeded(join.topology(), case.batches(), seed)
        found.append(sums)
    assert found[0] == found[1]


def test_engines_say_whether_they_count() -> None:
    assert not PanJoin().can_count
    assert not SPOJoin(mutable="decomposed").can_count
