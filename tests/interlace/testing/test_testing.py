"""`interlace.testing`: what components emit, the same for the same seed, with time as the test says."""

from __future__ import annotations

import doctest
import importlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

import interlace as il
from interlace.testing import Recording, Simulation, run
from tests.operators.as_of.as_of_cases import cases, expected, join_of
from tests.operators.multiway.random_several import random_case

pytest_plugins = ["interlace.testing.fixtures", "pytester"]

WORDS = {"a": {"word": ["to", "be", "or"]}, "b": [{"word": ["not"]}, {"word": ["to", "be"]}]}


@il.bolt(key="word")
def count(key: il.Key, rows: pa.RecordBatch) -> Any:
    """Count the rows of each key so far."""
    key.state["n"] = key.state.get("n", 0) + rows.num_rows
    return {"word": key.value, "n": key.state["n"]}


def word_count(tasks: int = 2) -> il.Topology:
    builder = il.TopologyBuilder("word count")
    builder.input("words")
    builder.bolt("count", count, tasks).fields_grouping("words", "word")
    builder.sink().global_grouping("count")
    return builder.build()


@pytest.mark.parametrize("seed", range(5))
def test_every_component_tells_what_it_emitted(seed: int) -> None:
    emitted = run(word_count(), {"words": WORDS}, seed=seed)
    assert list(emitted) == ["words", "count", "results"]
    assert Counter(emitted["words"]["word"].to_pylist()) == Counter(["to", "be", "or", "not", "to", "be"])
    assert emitted["results"].sort_by("word").sort_by("n") == emitted["count"].sort_by("word").sort_by("n")
    assert max((row["n"], row["word"]) for row in emitted["count"].to_pylist()) == (2, "to")


def test_the_same_seed_is_the_same_run_and_other_seeds_are_others() -> None:
    runs = [
        [run(word_count(), {"words": WORDS}, seed=seed)["results"].to_pylist() for _ in range(2)] for seed in range(8)
    ]
    assert all(one == two for one, two in runs)
    assert len({str(one) for one, _ in runs}) > 1


def test_a_join_is_a_topology_and_its_parts_have_names() -> None:
    join = il.StreamJoin("R", "S", "R.x < S.x", il.TimeWindow(10), select=["R.x", "S.x"], event_time="t")
    rows = {"R": {"x": [1, 5], "t": [1, 2]}, "S": {"x": [3], "t": [3]}}
    assert run(join, rows)["results"].to_pydict() == {"R.x": [1], "S.x": [3]}
    builder = il.TopologyBuilder()
    for stream in "RS":
        builder.input(stream, il.Input(event_time="t"))
    builder.join("pairs", join, inputs={"R": "R", "S": "S"})
    builder.bolt("same", il.bolt(lambda rows: rows)).shuffle_grouping("pairs")
    builder.sink().global_grouping("same")
    for seed in range(3):
        emitted = run(builder.build(), rows, seed=seed)
        assert emitted["pairs"].to_pydict() == emitted["results"].to_pydict() == {
            "R.x": [1], "S.x": [3], "event_time": [3]
        }  # fmt: skip


@il.bolt(key="user", tick=10)
class Silence:
    """Tells which users were silent for a minute."""

    def execute(self, key: il.Key, rows: pa.RecordBatch) -> None:
        """Wait from now on."""
        key.state["seen"] = True
        key.call_after(60)

    def on_timeout(self, key: il.Key) -> Any:
        """Tell."""
        return {"user": key.value}


def test_time_passes_as_the_test_says(simulate: Callable[..., Simulation]) -> None:
    builder = il.TopologyBuilder()
    builder.input("in")
    builder.bolt("silence", Silence, 2).fields_grouping("in", "user")
    builder.sink().global_grouping("silence")
    simulation = simulate(builder.build())
    simulation.send("in", {"user": ["ann", "bob"]})
    simulation.advance(30)
    simulation.send("in", {"user": ["bob"]})
    simulation.advance(30)
    assert simulation.new("silence").to_pylist() == [{"user": "ann"}]
    simulation.advance(29)
    assert simulation.new("silence").to_pylist() == []
    simulation.advance(1)
    assert simulation.new("silence").to_pylist() == [{"user": "bob"}]
    assert simulation.now == 90


def test_silent_sources_fall_idle_when_time_passes(simulate: Callable[..., Simulation]) -> None:
    builder = il.TopologyBuilder()
    builder.input("in", il.Input(event_time="t", idle_after=5))
    builder.bolt(
        "windows", il.bolt(window=il.Tumbling("t", 10))(lambda window, rows: {"end": window.end})
    ).global_grouping("in")
    builder.sink().global_grouping("windows")
    simulation = simulate(builder.build())
    simulation.open("in", "a", "b")
    simulation.send("in", {"t": [1, 12]}, source="a")
    simulation.settle()
    assert simulation.emitted("windows").num_rows == 0  # "b" could still send a row of that window
    simulation.send("in", {"t": [13]}, source="a")
    simulation.advance(4)
    simulation.send("in", {"t": [14]}, source="a")
    simulation.advance(2)
    assert simulation.emitted("windows").to_pylist() == [{"end": 10}]


@pytest.mark.parametrize("forgets", [False, True])
def test_a_restart_shows_state_that_a_snapshot_forgets(forgets: bool, simulate: Callable[..., Simulation]) -> None:
    class Total:
        def __init__(self) -> None:
            self.total = 0

        def execute(self, rows: pa.RecordBatch) -> Any:
            self.total += sum(rows["x"].to_pylist())
            return {"total": self.total}

    if forgets:
        Total.snapshot = lambda self: b""  # type: ignore[attr-defined]
        Total.restore = lambda self, state: None  # type: ignore[attr-defined]
    builder = il.TopologyBuilder()
    builder.input("in")
    builder.bolt("total", il.bolt(Total)).global_grouping("in")
    builder.sink().global_grouping("total")
    simulation = simulate(builder.build())
    simulation.send("in", {"x": [1, 2]})
    simulation.settle()
    simulation.restart("total")
    simulation.send("in", {"x": [4]})
    simulation.finish()
    assert simulation.emitted("total")["total"].to_pylist() == ([3, 4] if forgets else [3, 7])


@pytest.mark.parametrize("seed", range(5))
def test_faults_change_nothing_where_snapshots_hold_all(seed: int) -> None:
    rows = {"words": {"a": [{"word": [word]} for word in ["to", "be", "or", "not", "to", "be"]]}}
    calm = run(word_count(), rows, seed=seed)["count"]
    failing = run(word_count(), rows, seed=seed, faults=1.0)["count"]
    assert calm.sort_by([("word", "ascending"), ("n", "ascending")]).equals(
        failing.sort_by([("word", "ascending"), ("n", "ascending")])
    )


def test_faults_show_a_snapshot_that_forgets() -> None:
    class Total:
        def __init__(self) -> None:
            self.total = 0

        def execute(self, rows: pa.RecordBatch) -> Any:
            self.total += rows.num_rows
            return {"total": self.total}

        def snapshot(self) -> bytes:
            return b""

        def restore(self, state: bytes) -> None:
            """Forget."""

    builder = il.TopologyBuilder()
    builder.input("in")
    builder.bolt("total", il.bolt(Total)).global_grouping("in")
    builder.sink().global_grouping("total")
    rows = {"in": {"a": [{"x": [each]} for each in range(6)]}}
    found = [max(run(builder.build(), rows, seed=3, faults=share)["total"]["total"].to_pylist()) for share in (0, 1)]
    assert found[0] == 6 > found[1]
    with pytest.raises(il.TopologyError, match="between 0 and 1, not 3"):
        run(builder.build(), rows, faults=3)


@pytest.mark.parametrize("seed", range(12))
def test_random_joins_of_several_streams_follow_the_law_in_any_schedule(seed: int) -> None:
    case = random_case(900 + seed)
    expected = case.expected().table
    sources = {
        stream: {name: table.to_batches(3) or table for name, table in of_stream.items()}
        for stream, of_stream in case.sources.items()
    }
    found = run(case.join(sql=True), sources, seed=seed)["results"]
    assert found.num_rows == expected.num_rows
    assert not found.num_rows or found.cast(expected.schema).equals(expected)


@settings(max_examples=25)
@given(cases())
def test_as_of_joins_follow_the_law_in_any_schedule(case: dict[str, Any]) -> None:
    found = run(join_of(case), case["sources"], seed=case["seed"])["results"]
    wanted = expected(case)
    assert found.to_pylist() == wanted.to_pylist()


def test_a_bolt_between_joins_gives_the_same_in_any_schedule_with_faults() -> None:
    """A join feeds a bolt with state, which feeds a join; other schedules and faults must change nothing."""
    builder = il.TopologyBuilder("joins in a row")
    for name in "abc":
        builder.input(name, il.Input(event_time="ts"))
    first = il.StreamJoin("a", "b", "a.k = b.k", il.TimeWindow(5), select=["a.k", "a.id", "b.id"], event_time="ts")
    builder.join("pairs", first, inputs={"a": "a", "b": "b"})

    @il.bolt
    class Numbered:
        def __init__(self) -> None:
            self.count = 0

        def execute(self, rows: pa.RecordBatch) -> Any:
            first, self.count = self.count, self.count + rows.num_rows
            return {"n": range(first, self.count), "k": rows["a.k"], "event_time": rows["event_time"]}

    builder.bolt("numbered", Numbered).global_grouping("pairs")
    times = {"n": "event_time", "c": "ts"}
    second = il.StreamJoin("n", "c", "n.k = c.k", il.CountWindow(4), select=["n.n", "c.id"], event_time=times)
    builder.join("both", second, inputs={"n": "numbered", "c": "c"}, event_time=None)
    builder.sink().global_grouping("both")
    topology = builder.build()

    def rows(start: int) -> list[dict[str, Any]]:
        return [
            {"id": [at, at + 1], "k": [at % 3, (at + start) % 3], "ts": [at, at + 1]} for at in range(start, 14, 2)
        ]

    inputs = {name: {name: rows(start)} for start, name in enumerate("abc")}
    wanted = run(topology, inputs)["results"]
    assert wanted.num_rows > 20
    for seed in range(1, 6):
        assert run(topology, inputs, seed=seed, faults=0.5)["results"].equals(wanted)


@dataclass(frozen=True)
class Numbers(il.Spout):
    """The numbers up to 5."""

    def build(self, context: il.TaskContext) -> il.SpoutTask:
        return NumbersTask()


class NumbersTask(il.SpoutTask):
    def batches(self) -> Iterator[il.Emit]:
        for number in range(5):
            yield il.Emit(il.Batch(il.DEFAULT_STREAM, pa.record_batch({"x": [number]})))


def test_spouts_take_part() -> None:
    builder = il.TopologyBuilder()
    builder.spout("numbers", Numbers(), 2)
    builder.sink().global_grouping("numbers")
    emitted = run(builder.build(), {})
    assert Counter(emitted["results"]["x"].to_pylist()) == Counter([*range(5)] * 2)


def test_a_failure_names_the_task_and_the_seed() -> None:
    builder = il.TopologyBuilder()
    builder.input("in")
    builder.bolt("broken", il.bolt(lambda rows: rows["missing"])).shuffle_grouping("in")
    builder.sink().global_grouping("broken")
    with pytest.raises(il.TaskError, match="component 'broken', task 0, failed") as caught:
        run(builder.build(), {"in": {"x": [1]}}, seed=7)
    assert "seed=7" in caught.value.__notes__[0]


def test_wrong_names_and_rows_are_refused(simulate: Callable[..., Simulation]) -> None:
    with pytest.raises(il.UnknownInputError, match="no input stream 'wrong'"):
        run(word_count(), {"wrong": {"word": ["a"]}})
    simulation = simulate(word_count())
    with pytest.raises(il.UnknownComponentError, match="'words', 'count', 'results'"):
        simulation.emitted("wrong")
    with pytest.raises(il.UnknownComponentError):
        simulation.restart("wrong")
    simulation.send("words", {"word": ["a"]})
    with pytest.raises(il.SchemaError, match="wrong schema"):
        simulation.send("words", {"other": ["a"]})
    with pytest.raises(il.TopologyError, match="not str"):
        Simulation("word count")


def test_recorded_rows_are_sent_again_in_the_same_batches(tmp_path: Path) -> None:
    with il.LocalRuntime().launch(word_count()) as running, Recording(tmp_path).of(running) as feed:
        feed.send("words", {"word": ["to", "be"]}, source="a/b")
        feed.send("words", {"word": ["or"]}, source="a/b")
        feed.send("words", {"word": ["not"]})
    inputs = Recording(tmp_path).inputs()
    assert {
        source: [batch["word"].to_pylist() for batch in batches] for source, batches in inputs["words"].items()
    } == {
        "a/b": [["to", "be"], ["or"]],
        "words": [["not"]],
    }
    assert run(word_count(), inputs)["results"].num_rows == 4


def test_the_fixtures_work_in_a_project_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("pytest_plugins = ['interlace.testing.fixtures']")
    pytester.makepyfile(
        """
        import interlace as il

        def test_sum(simulate, schedule_seed):
            builder = il.TopologyBuilder()
            builder.input("in")
            builder.sink().global_grouping("in")
            simulation = simulate(builder.build(), seed=schedule_seed)
            simulation.send("in", {"x": [1]})
            simulation.finish()
            assert simulation.emitted("results").to_pylist() == [{"x": 1}]
        """
    )
    pytester.runpytest("--interlace-seeds", "3", "-p", "no:cacheprovider").assert_outcomes(passed=3)


@pytest.mark.parametrize("module", ["interlace.testing.simulation", "interlace.testing.recording"])
def test_the_examples_of_the_docstrings_run(module: str) -> None:
    tried = doctest.testmod(importlib.import_module(module))
    assert tried.attempted
    assert not tried.failed
