"""A topology inside a topology: names, inputs, outputs, and how the plan shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from tests.topology.graph.pictures import SVG
from topology import (
    DEFAULT_STREAM,
    Batch,
    Bolt,
    DuplicateComponentError,
    Emit,
    Input,
    LocalRuntime,
    MapBatches,
    Origin,
    Task,
    TaskContext,
    Topology,
    TopologyBuilder,
    TopologyError,
    UnknownComponentError,
    UnknownInputError,
    UnknownStreamError,
)


def plus_one(rows: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"x": [value + 1 for value in rows["x"].to_pylist()]})


@dataclass(frozen=True)
class SaysWhence(Bolt):
    """Passes rows on, with the name by which it knows where they come from, on two streams."""

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return {DEFAULT_STREAM: None, "names": None}

    def build(self, context: TaskContext) -> Task:
        return _SaysWhenceTask(context.component)


class _SaysWhenceTask(Task):
    def __init__(self, component: str) -> None:
        self._component = component

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        names = [f"{origin.component}[{origin.task}] {batch.stream} {batch.source} -> {self._component}"]
        yield Emit(Batch(DEFAULT_STREAM, batch.rows))
        yield Emit(Batch("names", pa.record_batch({"name": names})))


def adding() -> Topology:
    """Adds two, in two steps, and says on a sink of its own what the second step saw."""
    builder = TopologyBuilder("adding")
    builder.input("numbers")
    builder.bolt("one", MapBatches(plus_one)).global_grouping("numbers")
    builder.bolt("two", MapBatches(plus_one)).global_grouping("one")
    builder.bolt("whence", SaysWhence()).global_grouping("numbers").global_grouping("two")
    builder.sink().global_grouping("two")
    builder.sink("seen", aside=True).global_grouping("whence", "names")
    return builder.build()


def run(topology: Topology, **sent: pa.Table) -> dict[str, list[Any]]:
    with LocalRuntime().launch(topology) as running:
        for stream, rows in sent.items():
            running.send(stream.replace("_", "/"), rows)
        running.finish()
        return {
            sink: [next(iter(row.values())) for rows in running.results(sink, timeout=60) for row in rows.to_pylist()]
            for sink in topology.sinks
        }


def test_a_topology_can_be_included_twice_and_within_itself() -> None:
    middle = TopologyBuilder("middle")
    middle.input("in")
    middle.include("inner", adding(), inputs={"numbers": "in"})
    middle.sink("out").global_grouping("inner")
    middle.sink("also", aside=True).global_grouping("inner", "seen")
    builder = TopologyBuilder("outer")
    builder.input("numbers")
    builder.include("first", middle.build(), inputs={"in": "numbers"})
    builder.bolt("whence", SaysWhence()).global_grouping("first")
    builder.include("second", adding(), inputs={"numbers": ("whence", DEFAULT_STREAM)})
    builder.sink("out").global_grouping("second", "results")
    builder.sink("seen").global_grouping("first", "also").global_grouping("whence", "names")
    topology = builder.build()
    assert [part.name for part in topology.parts] == ["first", "first/inner", "second"]
    found = run(topology, numbers=pa.table({"x": [1, 20]}))
    assert found["out"] == [5, 24]
    assert sorted(found["seen"]) == [
        "first[0] default  -> whence",
        "numbers[0] default numbers -> first/inner/whence",
        "two[0] default  -> first/inner/whence",
    ]


def test_an_input_that_nothing_feeds_stays_one() -> None:
    builder = TopologyBuilder("outer")
    builder.include("part", adding())
    builder.sink().global_grouping("part")
    topology = builder.build()
    assert list(topology.inputs) == ["part/numbers"]
    assert run(topology, part_numbers=pa.table({"x": [1]}))["results"] == [3]


def test_several_streams_feed_one_input() -> None:
    builder = TopologyBuilder("outer")
    builder.input("a")
    builder.input("b")
    builder.bolt("more", MapBatches(plus_one), parallelism=2).shuffle_grouping("b")
    builder.include("part", adding(), inputs={"numbers": ["a", ("more", DEFAULT_STREAM)]})
    builder.sink().global_grouping("part")
    builder.sink("seen").global_grouping("part", "seen")
    found = run(builder.build(), a=pa.table({"x": [1]}), b=pa.table({"x": [10]}))
    assert sorted(found["results"]) == [3, 13]
    assert {name for name in found["seen"] if name.startswith("numbers")} == {
        "numbers[0] default a/a -> part/whence",
        "numbers[0] default more/0 -> part/whence",
    }


def test_the_plan_shows_a_part_folded_and_can_unfold_it() -> None:
    builder = TopologyBuilder("outer")
    builder.input("in")
    builder.include("part", adding(), inputs={"numbers": "in"})
    builder.sink().global_grouping("part")
    builder.sink("seen").global_grouping("part", "seen")
    plan = builder.build().plan()
    assert plan.logical() == (
        "topology 'outer': 4 components, 7 with those of its parts\n"
        "  in [Input]\n"
        "  part [Topology]  (adding)\n"
        "    <- in.default as numbers\n"
        "  results [Sink]\n"
        "    <- part.default by global\n"
        "  seen [Sink]\n"
        "    <- part.seen by global"
    )
    assert "  part/one [MapBatches]" in plan.unfolded().logical()
    names = [text.text for text in ElementTree.fromstring(plan.svg()).iter(f"{SVG}text")]
    assert names == ["in", "Input", "part", "Topology", "results", "Sink", "seen", "Sink"]


def test_a_part_that_feeds_itself_through_others_is_shown_unfolded() -> None:
    inner = TopologyBuilder("two ways")
    inner.input("a")
    inner.input("b")
    inner.sink("one").global_grouping("a")
    inner.bolt("add", MapBatches(plus_one)).global_grouping("b")
    inner.sink("other").global_grouping("add")
    builder = TopologyBuilder("outer")
    builder.input("in")
    builder.include("part", inner.build(), inputs={"a": "in", "b": "between"})
    builder.bolt("between", MapBatches(plus_one)).global_grouping("part", "one")
    builder.sink().global_grouping("part", "other")
    topology = builder.build()
    assert "part/add [MapBatches]" in topology.plan().logical()
    assert run(topology, **{"in": pa.table({"x": [1]})})["results"] == [3]


def test_mistakes_are_told_by_name() -> None:
    builder = TopologyBuilder("outer")
    builder.input("in")
    with pytest.raises(UnknownInputError, match="part 'p' has no input 'x'; its inputs: 'numbers'"):
        builder.include("p", adding(), inputs={"x": "in"})
    with pytest.raises(TopologyError, match="no '/'"):
        builder.include("p/q", adding())
    with pytest.raises(TopologyError, match="must be a topology"):
        builder.include("p", "adding")  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="a list of these, not 3"):
        builder.include("p", adding(), inputs={"numbers": 3})  # type: ignore[dict-item]
    with pytest.raises(TopologyError, match="inputs must say"):
        builder.include("p", adding(), inputs=["in"])  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="must be a join"):
        builder.join("p", adding(), inputs={})  # type: ignore[arg-type]
    builder.include("p", adding(), inputs={"numbers": "in"})
    for name in ("p", "p/one"):
        with pytest.raises(DuplicateComponentError, match="'p' exists already"):
            builder.bolt(name, MapBatches(plus_one))
    with pytest.raises(DuplicateComponentError, match="'in' exists already"):
        builder.include("in", adding())


def test_streams_are_checked_when_the_topology_is_built() -> None:
    builder = TopologyBuilder("outer")
    builder.include("p", adding(), inputs={"numbers": "nobody"})
    with pytest.raises(UnknownComponentError, match="'p/numbers' subscribes to 'nobody', which does not exist"):
        builder.build()
    builder = TopologyBuilder("outer")
    builder.include("p", adding())
    builder.sink().global_grouping("p", "one")
    with pytest.raises(UnknownStreamError, match="emits only: 'results', 'seen', 'default'"):
        builder.build()


def test_idle_after_is_for_rows_from_outside() -> None:
    inner = TopologyBuilder("inner")
    inner.input("in", Input(idle_after=1.0))
    inner.sink().global_grouping("in")
    with pytest.raises(TopologyError, match="set it on the inputs of the whole topology"):
        TopologyBuilder().include("p", inner.build(), inputs={"in": "x"})
