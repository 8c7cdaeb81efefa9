"""Every mistake that can be seen without running is refused by `build`, with the component's name and a way out."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from topology import (
    DEFAULT_STREAM,
    Batch,
    Bolt,
    CycleError,
    DuplicateComponentError,
    Emit,
    Fields,
    GroupingError,
    Input,
    MapBatches,
    Origin,
    Resources,
    Sink,
    Spout,
    SpoutTask,
    Task,
    TaskContext,
    Topology,
    TopologyBuilder,
    TopologyError,
    UnknownComponentError,
    UnknownInputError,
    UnknownStreamError,
    UnpicklableError,
)

SCHEMA = pa.schema([("word", pa.string()), ("tags", pa.list_(pa.string()))])


def same(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


class Numbers(Spout):
    def build(self, context: TaskContext) -> SpoutTask:
        return NumbersTask()


class NumbersTask(SpoutTask):
    def batches(self) -> Iterator[Emit]:
        yield Emit(Batch(DEFAULT_STREAM, pa.record_batch({"n": [1, 2, 3]})))


@dataclass(frozen=True)
class TwoStreams(Bolt):
    @property
    def outputs(self) -> dict[str, pa.Schema | None]:
        return {"small": None, "large": SCHEMA}

    def build(self, context: TaskContext) -> Task:
        raise NotImplementedError


@dataclass(frozen=True)
class HoldsLock(Bolt):
    lock: Any = field(default_factory=threading.Lock)

    def build(self, context: TaskContext) -> Task:
        raise NotImplementedError


def words() -> TopologyBuilder:
    builder = TopologyBuilder("t")
    builder.input("words", Input(SCHEMA))
    return builder


def fed(builder: TopologyBuilder) -> TopologyBuilder:
    builder.bolt("bolt", MapBatches(same)).shuffle_grouping("words")
    return builder


def no_components() -> None:
    TopologyBuilder("t").build()


def duplicate_name() -> None:
    words().input("words")


def empty_name() -> None:
    words().input("")


def name_that_is_no_text() -> None:
    words().input(3)  # type: ignore[arg-type]


def spout_given_as_bolt() -> None:
    words().bolt("numbers", Numbers())


def bolt_given_as_input() -> None:
    words().input("other", MapBatches(same))  # type: ignore[arg-type]


def class_instead_of_instance() -> None:
    words().bolt("two", TwoStreams)


def join_given_as_bolt() -> None:
    class Join:
        def as_part(self, event_time: str | None) -> Topology:
            return words().build()

    words().bolt("pairs", Join())


def topology_given_as_bolt() -> None:
    words().bolt("part", words().build())


def no_tasks() -> None:
    words().bolt("bolt", MapBatches(same), parallelism=0)


def half_a_task() -> None:
    words().bolt("bolt", MapBatches(same), parallelism=1.5)  # type: ignore[arg-type]


def subscribes_to_nothing() -> None:
    builder = words()
    builder.bolt("deaf", MapBatches(same))
    builder.build()


def sink_subscribes_to_nothing() -> None:
    builder = words()
    builder.sink("out")
    builder.build()


def unknown_component() -> None:
    builder = words()
    builder.bolt("bolt", MapBatches(same)).shuffle_grouping("wrods")
    builder.build()


def unknown_stream() -> None:
    builder = words()
    builder.bolt("two", TwoStreams()).shuffle_grouping("words")
    builder.sink("out").shuffle_grouping("two", stream="medium")
    builder.build()


def listening_to_a_sink() -> None:
    builder = words()
    builder.sink("out").shuffle_grouping("words")
    builder.bolt("bolt", MapBatches(same)).shuffle_grouping("out")
    builder.build()


def missing_grouping_field() -> None:
    builder = words()
    builder.bolt("count", MapBatches(same)).fields_grouping("words", "wrod")
    builder.build()


def missing_partial_key() -> None:
    builder = words()
    builder.bolt("count", MapBatches(same)).partial_key_grouping("words", "word", "wrod")
    builder.build()


def fields_without_fields() -> None:
    builder = words()
    builder.bolt("count", MapBatches(same)).fields_grouping("words")
    builder.build()


def field_without_a_hash() -> None:
    builder = words()
    builder.bolt("count", MapBatches(same)).fields_grouping("words", "tags")
    builder.build()


def listening_twice() -> None:
    builder = words()
    builder.bolt("count", MapBatches(same)).fields_grouping("words", "word").shuffle_grouping("words")
    builder.build()


def cycle() -> None:
    builder = words()
    builder.bolt("a", MapBatches(same)).shuffle_grouping("words").shuffle_grouping("c")
    builder.bolt("b", MapBatches(same)).shuffle_grouping("a")
    builder.bolt("c", MapBatches(same)).shuffle_grouping("b")
    builder.sink("out").shuffle_grouping("c")
    builder.build()


def feeding_itself() -> None:
    builder = words()
    builder.bolt("a", MapBatches(same)).shuffle_grouping("words").shuffle_grouping("a")
    builder.build()


def unpicklable_function() -> None:
    lock = threading.Lock()
    builder = words()
    builder.bolt("lambda", MapBatches(lambda rows: rows if lock else None)).shuffle_grouping("words")
    builder.build()


def unpicklable_state() -> None:
    builder = words()
    builder.bolt("locked", HoldsLock()).shuffle_grouping("words")
    builder.build()


def unpicklable_check_of_an_input() -> None:
    lock = threading.Lock()
    builder = TopologyBuilder("t")
    builder.input("checked", Input(check=lambda schema: lock.release()))
    builder.build()


def unpicklable_custom_grouping() -> None:
    lock = threading.Lock()
    builder = words()
    builder.bolt("bolt", MapBatches(same)).custom_grouping("words", lambda rows, tasks: [lock.locked()] * rows.num_rows)
    builder.build()


def wishes(**asked: Any) -> Callable[[], None]:
    def mistake() -> None:
        words().bolt("heavy", MapBatches(same)).resources(**asked)

    mistake.__name__ = f"resources_{asked}"
    return mistake


MISTAKES: list[tuple[Callable[[], None], type[TopologyError], list[str]]] = [
    (no_components, TopologyError, ["'t'", "add an input or a spout"]),
    (duplicate_name, DuplicateComponentError, ["'words'", "rename one"]),
    (empty_name, TopologyError, ["needs a name"]),
    (name_that_is_no_text, TopologyError, ["needs a name", "3"]),
    (spout_given_as_bolt, TopologyError, ["'numbers'", "must be a Bolt, not Numbers"]),
    (bolt_given_as_input, TopologyError, ["'other'", "must be an Input, not MapBatches"]),
    (class_instead_of_instance, TopologyError, ["'two'", "must be a Bolt"]),
    (join_given_as_bolt, TopologyError, ["'pairs' must be a Bolt, not Join", "builder.join('pairs', join, inputs="]),
    (topology_given_as_bolt, TopologyError, ["'part'", "builder.include('part', topology, inputs="]),
    (no_tasks, TopologyError, ["'bolt'", "1 or more, not 0"]),
    (half_a_task, TopologyError, ["'bolt'", "whole number", "1.5"]),
    (subscribes_to_nothing, TopologyError, ["'deaf'", "add a grouping"]),
    (sink_subscribes_to_nothing, TopologyError, ["'out'", "add a grouping"]),
    (unknown_component, UnknownComponentError, ["'bolt'", "'wrods'", "components: 'words', 'bolt'"]),
    (unknown_stream, UnknownStreamError, ["'out'", "'medium' of 'two'", "'small', 'large'"]),
    (listening_to_a_sink, UnknownStreamError, ["'bolt'", "'out'", "none"]),
    (missing_grouping_field, GroupingError, ["'count'", "'words'", "'wrod'", "word, tags"]),
    (missing_partial_key, GroupingError, ["'count'", "'words'", "'wrod'", "word, tags"]),
    (fields_without_fields, GroupingError, ["'count'", "'words'", "add a column"]),
    (field_without_a_hash, GroupingError, ["'count'", "'tags'", "list<", "group by a plain column"]),
    (listening_twice, GroupingError, ["'count'", "'words'", "keep one grouping"]),
    (cycle, CycleError, ["'b' -> 'c' -> 'a' -> 'b'", "remove one edge"]),
    (feeding_itself, CycleError, ["'a' -> 'a'", "remove one edge"]),
    (unpicklable_function, UnpicklableError, ["'lambda'", "lock", "in the function that uses them"]),
    (unpicklable_state, UnpicklableError, ["'locked'", "lock", "in build()"]),
    (unpicklable_check_of_an_input, UnpicklableError, ["'checked'", "lock"]),
    (unpicklable_custom_grouping, UnpicklableError, ["'bolt'", "Custom grouping on 'words'", "lock"]),
    (wishes(cpus=-1), TopologyError, ["'heavy'", "cpus", "0.01 or more, not -1"]),
    (wishes(cpus=0), TopologyError, ["'heavy'", "cpus", "not 0"]),
    (wishes(cpus=float("nan")), TopologyError, ["'heavy'", "cpus", "not nan"]),
    (wishes(cpus=float("inf")), TopologyError, ["'heavy'", "cpus", "not inf"]),
    (wishes(cpus="2"), TopologyError, ["'heavy'", "cpus", "not '2'"]),
    (wishes(cpus=True), TopologyError, ["'heavy'", "cpus", "not True"]),
    (wishes(memory=-5), TopologyError, ["'heavy'", "memory", "whole number of bytes", "not -5"]),
    (wishes(memory=1.5), TopologyError, ["'heavy'", "memory", "not 1.5"]),
    (wishes(memory="1 GB"), TopologyError, ["'heavy'", "memory", "not '1 GB'"]),
    (wishes(labels="zone=a"), TopologyError, ["'heavy'", "labels must be a mapping", "'zone=a'"]),
    (wishes(labels={"zone": 3}), TopologyError, ["'heavy'", "'zone'", "3", "'in(a, b)'"]),
    (wishes(labels={"zone": "in()"}), TopologyError, ["'heavy'", "'zone'", "'in()'"]),
    (wishes(labels={"no zone!": "a"}), TopologyError, ["'heavy'", "'no zone!'", "name of a node label"]),
]


@pytest.mark.parametrize(("mistake", "kind", "said"), MISTAKES, ids=[mistake.__name__ for mistake, _, _ in MISTAKES])
def test_a_mistake_is_named_with_its_component_and_a_remedy(
    mistake: Callable[[], None], kind: type[TopologyError], said: list[str]
) -> None:
    with pytest.raises(TopologyError) as caught:
        mistake()
    assert type(caught.value) is kind
    for words_said in said:
        assert words_said in str(caught.value)


def test_a_failed_call_adds_nothing() -> None:
    builder = words()
    with pytest.raises(TopologyError):
        builder.bolt("bolt", MapBatches(same), parallelism=0)
    fed(builder)
    assert [node.name for node in builder.build().nodes] == ["words", "bolt"]


def test_functions_may_be_defined_anywhere() -> None:
    limit = 3
    builder = TopologyBuilder("t")
    builder.input("checked", Input(check=lambda schema: None))
    builder.bolt("limited", MapBatches(lambda rows: rows.slice(0, limit))).custom_grouping(
        "checked", lambda rows, tasks: [0] * rows.num_rows
    )
    assert [node.name for node in builder.build().nodes] == ["checked", "limited"]


def test_every_kind_of_component_says_what_its_tasks_need() -> None:
    builder = TopologyBuilder("t")
    builder.input("words").resources(labels={"zone": "a"})
    builder.spout("numbers", Numbers(), parallelism=2).resources(memory=1024)
    builder.bolt("bolt", MapBatches(same)).shuffle_grouping("words").resources(cpus=2).shuffle_grouping("numbers")
    builder.sink().resources(cpus=0.5).global_grouping("bolt")
    topology = builder.build()
    assert {node.name: node.resources for node in topology.nodes} == {
        "words": Resources(labels={"zone": "a"}),
        "numbers": Resources(memory=1024),
        "bolt": Resources(cpus=2),
        "results": Resources(cpus=0.5),
    }
    assert topology.producers("bolt") == ("words", "numbers")
    assert "numbers x2 [Numbers]  each needs 1 KiB of memory\n" in str(topology.plan())


def test_refused_wishes_change_nothing() -> None:
    builder = words()
    bolt = builder.bolt("bolt", MapBatches(same)).shuffle_grouping("words").resources(cpus=2)
    with pytest.raises(TopologyError):
        bolt.resources(cpus=3, memory=-1)
    assert builder.build().node("bolt").resources == Resources(cpus=2)


def test_a_topology_is_frozen_and_later_additions_do_not_reach_it() -> None:
    builder = fed(words())
    topology = builder.build()
    builder.sink().shuffle_grouping("bolt")
    assert [node.name for node in topology.nodes] == ["words", "bolt"]
    with pytest.raises(FrozenInstanceError):
        topology.name = "other"  # type: ignore[misc]


def test_nodes_come_in_an_order_in_which_data_can_flow() -> None:
    builder = TopologyBuilder()
    builder.sink("out").shuffle_grouping("b")
    builder.bolt("b", MapBatches(same)).shuffle_grouping("a").shuffle_grouping("in")
    builder.bolt("a", MapBatches(same)).shuffle_grouping("in")
    builder.input("in")
    order = [node.name for node in builder.build().nodes]
    assert order == ["in", "a", "b", "out"]


def branching() -> Topology:
    builder = words()
    builder.spout("numbers", Numbers(), parallelism=3)
    builder.bolt("two", TwoStreams(), parallelism=2).shuffle_grouping("words").all_grouping("numbers")
    builder.sink("out").shuffle_grouping("two", "small").grouping("two", Fields(("word",)), "large")
    return builder.build()


def test_each_task_has_one_channel_from_every_task_that_feeds_it() -> None:
    topology = branching()
    assert topology.origins("two") == (
        Origin("words", 0, 0),
        Origin("numbers", 0, 1),
        Origin("numbers", 1, 2),
        Origin("numbers", 2, 3),
    )
    assert topology.origins("out") == (Origin("two", 0, 0), Origin("two", 1, 1))
    assert topology.origins("words") == (Origin("", 0, 0),)


def test_a_topology_knows_its_ends() -> None:
    topology = branching()
    assert list(topology.inputs) == ["words"]
    assert topology.sinks == ("out",)
    assert topology.consumers("two") == ("out",)
    assert topology.producers("two") == ("words", "numbers")
    assert isinstance(topology.node("out").component, Sink)


def test_asking_for_an_unknown_input_lists_those_there_are() -> None:
    with pytest.raises(UnknownInputError) as caught:
        branching().require_input("R")
    assert str(caught.value) == "topology 't' has no input stream 'R'; its input streams: 'words'"
