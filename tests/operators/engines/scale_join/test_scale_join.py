"""ScaleJoin against the oracle, its plan, and the balance of its threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import CountWindow, StreamJoin, TimeWindow
from operators.engines.scale_join.description import PROCESSING_THREAD, ScaleJoin, work_spread
from operators.engines.shared.answering import Answering
from operators.intake.late_rows import LATE_STREAM
from operators.protocol.streams import STEP
from operators.query.errors import JoinError
from tests.operators.oracle_check import check, join_of
from tests.operators.per_task import EachTaskAnActor
from tests.strategies import JoinCase, join_cases
from topology import Batch, Emit, LocalRuntime, Metrics, Origin, Punctuation, Task, TaskContext
from topology.tasks.metrics import TaskCounters, TaskMetrics

INDEXES = (None, "auto", "TieredRuns", "IMTree", "LinearScan")
TAKEN = {stream.name for stream in STEP}


@given(join_cases(), st.integers(1, 8), st.sampled_from(INDEXES), st.integers(1, 9))
@settings(max_examples=40)
def test_results_and_their_order_are_those_of_the_oracle(
    case: JoinCase, threads: int, index: str | None, step_rows: int
) -> None:
    check(case, ScaleJoin(threads, index), LocalRuntime(), step_rows)


@given(join_cases(max_rows=60, max_sources=2), st.integers(1, 8), st.sampled_from(INDEXES), st.integers(1, 40))
@settings(max_examples=25)
def test_longer_streams_too(case: JoinCase, threads: int, index: str | None, step_rows: int) -> None:
    check(case, ScaleJoin(threads, index), LocalRuntime(), step_rows)


@pytest.mark.slow
@given(join_cases(max_rows=80), st.integers(1, 8), st.sampled_from(INDEXES), st.integers(1, 60))
@settings(max_examples=2000)
def test_very_many_random_joins(case: JoinCase, threads: int, index: str | None, step_rows: int) -> None:
    check(case, ScaleJoin(threads, index), LocalRuntime(), step_rows)


JOIN = StreamJoin(
    "R",
    "S",
    "abs(R.x - S.a) <= 10 AND abs(R.y - S.b) <= 10",
    TimeWindow(40),
    select=["R.x", "R.y", "S.a", "S.b"],
    event_time="ts",
    using=ScaleJoin(3),
    step_rows=500,
)


def readings(names: tuple[str, str], times: np.ndarray, seed: int) -> pa.Table:
    """Tuples of the CellJoin benchmark, with fewer values so that some match."""
    rng = np.random.default_rng(seed)
    columns = {names[0]: rng.integers(1, 300, len(times)), names[1]: rng.uniform(1, 300, len(times))}
    return pa.table({"ts": times, **columns})


def test_the_plan_shows_the_elements_of_the_paper() -> None:
    plan = str(JOIN.plan())
    for element in ("input-scale-gate", PROCESSING_THREAD, "output-scale-gate"):
        assert element in plan
    assert "nested loop" in plan
    assert JOIN.topology().node(PROCESSING_THREAD).parallelism == 3
    assert replace(JOIN, using=ScaleJoin()).topology().node(PROCESSING_THREAD).parallelism == os.cpu_count()
    assert "TieredRuns" in str(replace(JOIN, using=ScaleJoin(2, "TieredRuns")).plan())


def test_wrong_arguments_are_named() -> None:
    for threads in (0, -1, True, 1.5, "2"):
        with pytest.raises(JoinError, match="ScaleJoin: threads must be"):
            ScaleJoin(threads)  # type: ignore[arg-type]
    with pytest.raises(JoinError, match="ScaleJoin: index must be"):
        ScaleJoin(index=3)  # type: ignore[arg-type]
    with pytest.raises(JoinError, match="ScaleJoin: index must be None for the nested loop, or one of auto"):
        ScaleJoin(index="Tree")


@pytest.mark.usefixtures("ray_cluster")
def test_ray_and_the_embedded_runtime_agree_to_the_byte() -> None:
    times = [np.sort(np.random.default_rng(k).integers(0, 200, 900)) for k in range(3)]
    sources = {
        "R": {f"r{k}": readings(("x", "y"), times[k], k) for k in (1, 2)},
        "S": {"s": readings(("a", "b"), times[0], 3)},
    }
    local = JOIN.collect(sources, LocalRuntime())
    assert local.num_rows > 1000
    assert JOIN.collect(sources, EachTaskAnActor()).combine_chunks().equals(local.combine_chunks())


def test_a_tuple_with_very_many_matches_is_answered_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answering.__init__, "__defaults__", (16,))
    rows = 120
    table = pa.table({"id": range(rows), "x": [1] * rows})
    join = StreamJoin(
        "R", "S", "R.x = S.x", CountWindow(1000), select=["R.id", "S.id"], using=ScaleJoin(3), step_rows=30
    )
    result = join.collect({"R": table, "S": table})
    pairs = list(zip(result["R.id"].to_pylist(), result["S.id"].to_pylist(), strict=True))
    expected = []
    for row in range(rows):
        expected += [(row, earlier) for earlier in range(row)] + [(earlier, row) for earlier in range(row + 1)]
    assert pairs == expected


@given(join_cases(), st.integers(1, 5), st.integers(1, 9))
@settings(max_examples=15)
def test_all_threads_together_store_every_row_once(case: JoinCase, threads: int, step_rows: int) -> None:
    running = Pipeline(join_of(case, ScaleJoin(threads), step_rows=step_rows))
    for stream, sources in case.batches().items():
        for name, batches in sources.items():
            at = 0
            for rows in batches:
                running.send(stream, Batch("default", rows, first=at, source=name))
                at += rows.num_rows
    running.finish()
    stored = [task.own["left_stored"] + task.own["right_stored"] for task in running.metrics().of(PROCESSING_THREAD)]
    arrived = running.tasks["router"][0].metrics()
    assert sum(stored) == arrived["left_rows"] + arrived["right_rows"]
    assert max(stored) - min(stored) <= 2  # one row per side


@dataclass
class Pipeline:
    """The tasks of a join driven by hand, without threads, from the gate to the processing threads."""

    join: StreamJoin
    tasks: dict[str, list[Task]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        topology = self.join.topology()
        for name in ("input-scale-gate", "router", PROCESSING_THREAD):
            node = topology.node(name)
            self.tasks[name] = [
                node.component.build(TaskContext(name, number, node.parallelism))  # type: ignore[misc]
                for number in range(node.parallelism)
            ]

    @property
    def gate(self) -> Task:
        return self.tasks["input-scale-gate"][0]

    def send(self, stream: str, batch: Batch) -> None:
        self._route(self.gate.on_batch(batch, Origin(stream, 0, 0)))

    def idle(self) -> None:
        self._route(self.gate.on_idle())

    def finish(self) -> None:
        for stream in self.join.stream_names:
            self._route(self.gate.on_input_end(Origin(stream, 0, 0)))
        self._route(self.gate.on_end())

    def metrics(self) -> Metrics:
        tasks = enumerate(self.tasks[PROCESSING_THREAD])
        return Metrics(
            tuple(TaskMetrics.of(PROCESSING_THREAD, each, TaskCounters(), 0, task.metrics()) for each, task in tasks)
        )

    def _route(self, actions: Iterable[Emit]) -> None:
        for routed in _pass_on(self.tasks["router"][0], actions, Origin("input-scale-gate", 0, 0)):
            if isinstance(routed.message, Batch) and routed.message.stream not in TAKEN:
                continue
            for task in self.tasks[PROCESSING_THREAD]:
                for _ in _pass_on(task, [routed], Origin("router", 0, 0)):
                    pass
                task.check_invariants()


def _pass_on(task: Task, actions: Iterable[Emit], origin: Origin) -> Iterable[Emit]:
    for action in actions:
        message = action.message
        if isinstance(message, Batch):
            yield from task.on_batch(message, origin) if message.stream != LATE_STREAM else ()
        elif isinstance(message, Punctuation):
            yield from task.on_punctuation(message, origin)


def constant(second: int, source: int) -> float:
    return (120.0, 30.0, 22.0, 23.0, 15.0)[source]


def fluctuating(second: int, source: int) -> float:
    return 40 + (20 + 4 * source) * float(np.sin(second / (3 + 2 * source)))


def peaks(second: int, source: int) -> float:
    return 30 + 8 * source + (300.0 if (second + 7 * source) % 15 == 0 else 0.0)


@pytest.mark.parametrize(
    ("rate", "r_sources", "s_sources", "threads"),
    [(constant, 1, 4, 10), (fluctuating, 3, 2, 12), (peaks, 4, 2, 14)],
    ids=["constant distinct rates", "fluctuating rates", "rates with peaks"],
)
def test_work_is_shared_evenly_whatever_the_rates(
    rate: Callable[[int, int], float], r_sources: int, s_sources: int, threads: int
) -> None:
    """The three skew experiments of the paper (figure 8), at a tenth of its rates and a window of 40 seconds."""
    running = Pipeline(replace(JOIN, using=ScaleJoin(threads), window=TimeWindow(40_000), step_rows=1 << 17))
    sent: dict[tuple[str, str], int] = {}
    spreads = []
    before = None
    for second in range(60):
        for number in range(r_sources + s_sources):
            stream, names = ("R", ("x", "y")) if number < r_sources else ("S", ("a", "b"))
            rows = max(1, int(rate(second, number)))
            times = 1000 * second + np.linspace(0, 999, rows).astype(np.int64)
            source = f"{stream}-{number}"
            first = sent.get((stream, source), 0)
            batch = readings(names, times, 100 * second + number).combine_chunks().to_batches()[0]
            running.send(stream, Batch("default", batch, first=first, source=source))
            sent[stream, source] = first + rows
        running.idle()
        after = running.metrics()
        if second > 40:  # both windows are full
            spreads.append(work_spread(before, after))
        before = after
    assert work_spread(None, running.metrics()) < 0.01
    assert 0 < max(spreads) < 0.04
