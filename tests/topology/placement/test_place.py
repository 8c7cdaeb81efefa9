"""Placement: every task in one worker, groups as documented, for random topologies, clusters and wishes."""

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.topology.placement.topologies import Chatty, Gathering, Numbers, clusters, same, topologies
from topology import ClusterNode, MapBatches, Placement, Sink, Topology, TopologyBuilder, TopologyError, Workers, place
from topology.graph.graph import TaskName

wishes = st.one_of(
    st.sampled_from(["default", "per-task", Workers(), Workers(None, "STRICT_PACK")]),
    st.builds(Workers, st.integers(1, 12), st.sampled_from(["PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD"])),
)

LAPTOP = ClusterNode("laptop", "127.0.0.1", 2, 2, 2**30)
SERVER = ClusterNode("server", "10.0.0.1", 64, 64, 2**36)


def tasks_of(topology: Topology) -> list[TaskName]:
    return [(node.name, number) for node in topology.nodes for number in range(node.parallelism)]


def groups(placement: Placement) -> list[list[str]]:
    return [[f"{component}/{number}" for component, number in worker.tasks] for worker in placement.workers]


def placed(topology: Topology, nodes: list[ClusterNode], wish: Any) -> Placement | None:
    """The placement, or None where the labels need more workers than asked for."""
    labels = {str(node.resources.labels) for node in topology.nodes}
    if not isinstance(wish, Workers) or wish.count is None or wish.count >= len(labels):
        return place(topology, nodes, wish)
    with pytest.raises(TopologyError, match=f"needs {len(labels)} workers or more, not Workers.{wish.count}.: tasks"):
        place(topology, nodes, wish)
    return None


@given(topologies(labelled=True, asking=True), clusters, wishes)
def test_every_task_is_in_one_worker(topology: Topology, nodes: list[ClusterNode], wish: Any) -> None:
    placement = placed(topology, nodes, wish)
    if placement is None:
        return
    assert Counter(task for worker in placement.workers for task in worker.tasks) == Counter(tasks_of(topology))
    assert all(worker.tasks for worker in placement.workers)
    for task in tasks_of(topology):
        assert task in placement.worker_of(task).tasks
    assert placement == place(topology, list(reversed(nodes)), wish)


@given(topologies(labelled=True), clusters, wishes)
def test_tasks_with_different_labels_never_share_a_worker(
    topology: Topology, nodes: list[ClusterNode], wish: Any
) -> None:
    placement = placed(topology, nodes, wish)
    for worker in placement.workers if placement is not None else ():
        for component, _ in worker.tasks:
            assert topology.node(component).resources.labels == worker.labels


@given(topologies(), clusters)
def test_by_default_each_task_is_alone_except_beside_inputs_and_sinks(
    topology: Topology, nodes: list[ClusterNode]
) -> None:
    placement = place(topology, nodes)
    beside = {node.name: node.component.beside for node in topology.nodes}
    aside = {node.name for node in topology.nodes if isinstance(node.component, Sink) and node.component.aside}
    alone = [task for task in tasks_of(topology) if beside[task[0]] is None]
    for task in alone:
        assert placement.worker_of(task).tasks == (task,)
    for side in ("inputs", "sinks"):
        together = {
            placement.worker_of(t).name for t in tasks_of(topology) if beside[t[0]] == side and t[0] not in aside
        }
        assert len(together) <= 1
    assert len(placement.workers) <= len(alone) + (2 if alone else 1)


@given(topologies())
def test_a_sink_aside_is_where_fewer_edges_cross(topology: Topology) -> None:
    placement = place(topology, [])
    for node in topology.nodes:
        if not (isinstance(node.component, Sink) and node.component.aside):
            continue
        here = placement.worker_of((node.name, 0))
        crossing = sum(receiver == (node.name, 0) for _, receiver in placement.crossing(topology))
        for other in placement.workers:
            if any(topology.node(component).component.beside for component, _ in other.tasks) and other is not here:
                channels = [
                    (producer, number)
                    for producer in topology.producers(node.name)
                    for number in range(topology.node(producer).parallelism)
                ]
                assert crossing <= sum(channel not in other.tasks for channel in channels)


@given(topologies(), st.integers(1, 12))
def test_a_number_of_workers_is_kept_and_shares_the_tasks_evenly(topology: Topology, count: int) -> None:
    placement = place(topology, [], Workers(count))
    assert len(placement.workers) == min(count, len(tasks_of(topology)))
    assert ("only" in placement.note) == (count > len(tasks_of(topology)))
    beside = {node.name: node.component.beside for node in topology.nodes}
    alone = [[task for task in worker.tasks if beside[task[0]] is None] for worker in placement.workers]
    spread = {len(tasks) for tasks in alone}
    assert max(spread) - min(spread) <= 1
    for node in topology.nodes:
        if node.component.beside is None:
            most = Counter(placement.worker_of((node.name, number)).name for number in range(node.parallelism))
            assert max(most.values()) == math.ceil(node.parallelism / len(placement.workers))
    default = place(topology, [])
    if len(placement.workers) <= len(default.workers):
        for worker in default.workers:
            assert len({placement.worker_of(task).name for task in worker.tasks}) == 1


@given(topologies(labelled=True, asking=True), clusters, wishes)
def test_wishes_add_up_and_are_never_scaled(topology: Topology, nodes: list[ClusterNode], wish: Any) -> None:
    placement = placed(topology, nodes, wish)
    if placement is None:
        return
    shares = set()
    for worker in placement.workers:
        asked = [topology.node(component).resources for component, _ in worker.tasks]
        cpus = [each.cpus for each in asked if each.cpus is not None]
        memory = [each.memory for each in asked if each.memory is not None]
        assert worker.memory == (sum(memory) if memory else None)
        if cpus:
            assert worker.cpus == pytest.approx(sum(cpus))
        else:
            shares.add(worker.cpus)
    assert len(shares) <= 1
    assert all(0.01 <= share <= 1 for share in shares)


@given(topologies(), clusters)
def test_workers_without_wishes_take_one_cpu_each_or_share_half(topology: Topology, nodes: list[ClusterNode]) -> None:
    workers = place(topology, nodes).workers
    free = sum(node.cpus_free for node in nodes)
    share = workers[0].cpus
    if nodes and sum(math.floor(node.cpus_free) for node in nodes) >= len(workers):
        assert share == 1
    elif nodes:
        assert share == pytest.approx(max(0.01, min(1, math.floor(50 * free / len(workers) + 1e-9) / 100)))
    else:
        assert share == 1


@given(topologies(labelled=True, asking=True), clusters, wishes)
def test_names_are_unique_and_the_table_shows_every_worker(
    topology: Topology, nodes: list[ClusterNode], wish: Any
) -> None:
    placement = placed(topology, nodes, wish)
    if placement is None:
        return
    names = [worker.name for worker in placement.workers]
    assert len(set(names)) == len(names)
    shown = str(placement).splitlines()[2:]
    for worker, line in zip(placement.workers, shown, strict=False):
        assert line.split()[0] == worker.name.split()[0]
        if len(worker.tasks) == 1:
            assert worker.name == "{}/{}".format(*worker.tasks[0])


@given(topologies(labelled=True), wishes)
def test_crossing_edges_are_those_between_workers(topology: Topology, wish: Any) -> None:
    placement = placed(topology, [], wish)
    if placement is None:
        return
    channels = {
        ((edge.producer, sender), (edge.consumer, receiver))
        for edge in topology.edges
        for sender in range(topology.node(edge.producer).parallelism)
        for receiver in range(topology.node(edge.consumer).parallelism)
    }
    crossing = placement.crossing(topology)
    assert len(set(crossing)) == len(crossing)
    assert set(crossing) == {(a, b) for a, b in channels if placement.worker_of(a) != placement.worker_of(b)}


def pipeline() -> Topology:
    """Two inputs, a chatty bolt, four elements, a gathering bolt, a sink and a sink aside."""
    builder = TopologyBuilder("pipeline")
    builder.input("S")
    builder.input("R")
    builder.bolt("gate", Chatty()).global_grouping("S").global_grouping("R")
    builder.bolt("element", MapBatches(same), parallelism=4).shuffle_grouping("gate")
    builder.bolt("collector", Gathering()).global_grouping("element")
    builder.sink().global_grouping("collector")
    builder.sink("late", aside=True).global_grouping("gate")
    return builder.build()


ENTRY = ["S/0", "R/0", "gate/0", "late/0"]
EXIT = ["collector/0", "results/0"]


def test_the_default_keeps_entry_and_exit_together_and_elements_apart() -> None:
    elements = [[f"element/{number}"] for number in range(4)]
    assert groups(place(pipeline(), [SERVER])) == [ENTRY, *elements, EXIT]


def test_a_given_number_of_workers_mixes_elements_with_the_ends_last() -> None:
    assert groups(place(pipeline(), [SERVER], Workers(1))) == [
        [
            "S/0",
            "R/0",
            "gate/0",
            "element/0",
            "element/1",
            "element/2",
            "element/3",
            "late/0",
            "collector/0",
            "results/0",
        ]
    ]
    assert groups(place(pipeline(), [SERVER], Workers(2))) == [
        ["S/0", "R/0", "gate/0", "element/1", "element/3", "late/0"],
        ["element/0", "element/2", "collector/0", "results/0"],
    ]
    assert groups(place(pipeline(), [SERVER], Workers(5))) == [
        ENTRY, ["element/0"], ["element/1"], ["element/2"], ["element/3", *EXIT],
    ]  # fmt: skip
    assert groups(place(pipeline(), [SERVER], Workers(7))) == [
        ["S/0", "R/0", "late/0"], ["gate/0"], *[[f"element/{n}"] for n in range(4)], EXIT,
    ]  # fmt: skip


def test_a_topology_without_bolts_is_one_process() -> None:
    builder = TopologyBuilder("through")
    builder.input("in")
    builder.sink().global_grouping("in")
    assert groups(place(builder.build(), [SERVER])) == [["in/0", "results/0"]]


def test_entry_and_exit_are_apart_where_anything_runs_between_them() -> None:
    builder = TopologyBuilder("labelled")
    builder.input("in")
    builder.bolt("model", MapBatches(same)).shuffle_grouping("in").resources(labels={"disk": "ssd"})
    builder.sink().global_grouping("model")
    assert groups(place(builder.build(), [SERVER])) == [["in/0"], ["model/0"], ["results/0"]]


def test_a_spout_is_alone() -> None:
    builder = TopologyBuilder("numbers")
    builder.spout("numbers", Numbers(), parallelism=2)
    builder.sink().global_grouping("numbers")
    assert groups(place(builder.build(), [SERVER])) == [["numbers/0"], ["numbers/1"], ["results/0"]]


def test_a_laptop_holds_several_topologies() -> None:
    assert {worker.cpus for worker in place(pipeline(), [LAPTOP]).workers} == {0.16}
    assert {worker.cpus for worker in place(pipeline(), [SERVER]).workers} == {1.0}


def test_workers_that_must_share_a_node_share_half_of_the_largest() -> None:
    nodes = [LAPTOP, ClusterNode("other", "10.0.0.9", 4, 4, 2**30)]
    assert {worker.cpus for worker in place(pipeline(), nodes, Workers(None, "STRICT_PACK")).workers} == {0.33}
    assert {worker.cpus for worker in place(pipeline(), nodes, Workers(None, "PACK")).workers} == {1.0}


def test_no_worker_is_called_as_the_controller_and_equal_names_are_numbered() -> None:
    builder = TopologyBuilder("names")
    builder.input("in")
    builder.bolt("controller", MapBatches(same), parallelism=4).shuffle_grouping("in")
    names = [worker.name for worker in place(builder.build(), [SERVER], Workers(2)).workers]
    assert names == ["in+controller", "controller#2"]


def test_a_long_name_is_shortened() -> None:
    builder = TopologyBuilder("long")
    for number in range(20):
        builder.input(f"a-stream-with-a-name-{number}")
    [worker] = place(builder.build(), [SERVER]).workers
    assert worker.name == "a-stream-with-a-name-0+a-stream-with-a-name-1+18 more"


def test_the_table() -> None:
    builder = TopologyBuilder("table")
    builder.input("words").resources(labels={"zone": "a", "disk": "ssd"})
    builder.bolt("count", MapBatches(same), parallelism=2).shuffle_grouping("words").resources(cpus=2, memory=3 * 2**30)
    builder.sink().global_grouping("count")
    assert str(place(builder.build(), [SERVER], Workers(9, "PACK"))) == (
        "placement: 4 workers, PACK\n"
        "  worker     tasks       cpus  memory  labels\n"
        "  words/0    words[0]    1             disk=ssd zone=a\n"
        "  count/0    count[0]    2     3 GiB\n"
        "  count/1    count[1]    2     3 GiB\n"
        "  results/0  results[0]  1\n"
        "9 workers were asked for, but the topology has only 4 tasks"
    )


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda: Workers(0), "count must be a whole number of 1 or more, not 0"),
        (lambda: Workers(2.5), "not 2.5"),  # type: ignore[arg-type]
        (lambda: Workers(True), "not True"),
        (lambda: Workers(2, "NEAR"), "one of PACK, SPREAD, STRICT_PACK, STRICT_SPREAD, not 'NEAR'"),  # type: ignore[arg-type]
        (lambda: place(pipeline(), [], "per-node"), "'default', 'per-task' or Workers(n), not 'per-node'"),  # type: ignore[arg-type]
        (lambda: place(pipeline(), [], 4), "not 4"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_wish_is_refused(mistake: Any, said: str) -> None:
    with pytest.raises(TopologyError) as caught:
        mistake()
    assert said in str(caught.value)


# where the state is kept


@given(topologies(asking=True), clusters, wishes, st.data())
def test_what_keeps_the_state_shares_a_worker_and_all_others_stay(
    topology: Topology, nodes: list[ClusterNode], wish: Any, data: st.DataObject
) -> None:
    together = frozenset(data.draw(st.sets(st.sampled_from([node.name for node in topology.nodes]), min_size=1)))
    before, placement = place(topology, nodes, wish), place(topology, nodes, wish, together)
    holders = [worker for worker in placement.workers if any(name in together for name, _ in worker.tasks)]
    assert len(holders) == 1
    assert Counter(task for worker in placement.workers for task in worker.tasks) == Counter(tasks_of(topology))
    apart = [group for group in groups(before) if not any(task.rpartition("/")[0] in together for task in group)]
    assert [group for group in groups(placement) if not any(task.rpartition("/")[0] in together for task in group)] == (
        apart
    )


def stateful() -> TopologyBuilder:
    builder = TopologyBuilder("stateful")
    builder.input("in")
    builder.bolt("gate", Chatty()).global_grouping("in")
    builder.bolt("map", MapBatches(same), 2).shuffle_grouping("gate")
    builder.sink().shuffle_grouping("map")
    return builder


def test_a_worker_for_each_task_but_those_that_keep_the_state() -> None:
    placement = place(stateful().build(), [SERVER], "per-task", frozenset(["in", "gate"]))
    assert groups(placement) == [["in/0", "gate/0"], ["map/0"], ["map/1"], ["results/0"]]
    assert "gate, in share a worker, because the state is kept there" in str(placement)


def test_labels_that_part_what_keeps_the_state_are_refused() -> None:
    builder = TopologyBuilder("parted")
    builder.input("in").resources(labels={"zone": "a"})
    builder.bolt("gate", Chatty()).global_grouping("in")
    builder.sink().shuffle_grouping("gate")
    with pytest.raises(TopologyError, match="need the same labels, not none and zone=a"):
        place(builder.build(), [SERVER], "default", frozenset(["in", "gate"]))
