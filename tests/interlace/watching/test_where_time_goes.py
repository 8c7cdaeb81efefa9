"""The way on which results come latest, and the graph as it is placed on nodes."""

from __future__ import annotations

import interlace as il
from interlace.watching.critical_path import Hop, critical_path, traced
from interlace.watching.load import Load
from interlace.watching.look import Look
from interlace.watching.physical import physical_graph, placed_flows
from topology import AGE_BOUNDS, Ages, Metrics, Status, TaskMetrics, WorkerStatus
from topology.tasks.metrics import EdgeMetrics


def diamond() -> il.Topology:
    r"""in -> split -> fast | slow x2 -> both -> results, and aside <- split."""
    builder = il.TopologyBuilder("diamond")
    builder.input("in")
    builder.bolt("split", il.MapBatches(lambda rows: rows)).shuffle_grouping("in")
    builder.bolt("fast", il.MapBatches(lambda rows: rows)).shuffle_grouping("split")
    builder.bolt("slow", il.MapBatches(lambda rows: rows), parallelism=2).shuffle_grouping("split")
    builder.bolt("both", il.MapBatches(lambda rows: rows)).shuffle_grouping("fast").shuffle_grouping("slow")
    builder.sink().global_grouping("both")
    builder.sink("aside", aside=True).global_grouping("split")
    return builder.build()


def aged(name: str, seconds: float) -> Load:
    """The load of a component at which rows arrived when they were so old."""
    counts = [0] * (len(AGE_BOUNDS) + 1)
    counts[AGE_BOUNDS.index(seconds)] = 10
    return Load(name, 1, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0.0, Ages(tuple(counts), 10 * seconds))


def test_the_path_goes_where_rows_are_latest_and_the_longest_hop_is_named() -> None:
    ages = {"split": 0.001, "fast": 0.002, "slow": 0.5, "both": 0.7, "results": 0.7, "aside": 50.0}
    hops = critical_path(diamond(), {name: aged(name, age) for name, age in ages.items()})
    assert [(hop.producer, hop.consumer) for hop in hops] == [
        ("in", "split"), ("split", "slow"), ("slow", "both"), ("both", "results"),
    ]  # fmt: skip
    assert max(hops, key=lambda hop: hop.seconds).consumer == "slow"
    assert "pass between 'split' and 'slow'." in traced(hops)
    assert traced([Hop("a", "b", 0.25), Hop("b", "c", 0.05)]) == (
        "Half of the results are at least 300 ms old when they come; 250 ms of that pass between 'a' and 'b'."
    )


def test_without_results_there_is_no_path() -> None:
    assert critical_path(diamond(), {"aside": aged("aside", 50.0)}) == []
    assert traced([]) == ""


def look(at: float, rows: int) -> Look:
    """Two nodes; `slow` has a task on each."""

    def task(component: str, number: int = 0, *edges: EdgeMetrics) -> TaskMetrics:
        return TaskMetrics(component, number, rows, rows, 0, 0, 0, 0, 0.0, 0, {}, edges=edges)

    tasks = (
        task("split"), task("slow", 0, EdgeMetrics("split", 0, rows, 8 * rows)),
        task("slow", 1, EdgeMetrics("split", 0, 3 * rows, 24 * rows)),
        task("both", 0, EdgeMetrics("slow", 0, rows, 8), EdgeMetrics("slow", 1, rows, 8)),
    )  # fmt: skip
    near = WorkerStatus("w-0", "near", 1, (("in", 0), ("split", 0), ("slow", 0), ("fast", 0)))
    far = WorkerStatus("w-1", "far", 2, (("slow", 1), ("both", 0), ("results", 0)))
    return Look(at, diamond(), Metrics(tasks), Status("diamond", il.State.RUNNING, (near, far)))


def test_the_graph_by_node_has_a_box_for_each_component_on_each_node_and_the_rates_between_them() -> None:
    drawn = physical_graph(look(1.0, 10))
    assert [group["name"] for group in drawn["groups"]] == ["far", "near", "–"]  # `aside` has no process yet
    boxes = {box["id"]: box for box in drawn["boxes"]}
    assert {"slow@near", "slow@far", "split@near", "aside@–"} <= set(boxes)
    columns = {group["name"]: (group["x"], group["x"] + group["width"]) for group in drawn["groups"]}
    for box in drawn["boxes"]:
        left, right = columns[box["node"]]
        assert left <= box["x"] < box["x"] + box["width"] <= right
        assert box["y"] + box["height"] <= drawn["height"]
    places = [(box["x"], box["y"]) for box in drawn["boxes"]]
    assert len(set(places)) == len(places)
    edges = {(edge["from"], edge["to"]) for edge in drawn["edges"]}
    assert {("split@near", "slow@near"), ("split@near", "slow@far"), ("slow@far", "both@far")} <= edges
    flows = {(flow["from"], flow["to"]): flow for flow in placed_flows(look(1.0, 10), look(3.0, 30))}
    assert flows["split@near", "slow@far"]["rows_per_second"] == 30.0
    assert flows["split@near", "slow@near"]["rows_per_second"] == 10.0
    assert set(flows) <= edges


def test_a_graph_over_many_nodes_is_drawn_soon_and_from_top_to_bottom() -> None:
    builder = il.TopologyBuilder("wide")
    builder.input("in")
    before = "in"
    for name in ("a", "b", "c", "d"):
        builder.bolt(name, il.MapBatches(lambda rows: rows), parallelism=12).shuffle_grouping(before)
        before = name
    builder.sink().global_grouping(before)
    workers = tuple(
        WorkerStatus(f"w-{number}", f"node-{number:02}", number, tuple((name, number) for name in "abcd"))
        for number in range(12)
    )
    drawn = physical_graph(Look(1.0, builder.build(), Metrics(()), Status("wide", il.State.RUNNING, workers)))
    boxes = {box["id"]: box for box in drawn["boxes"]}
    assert len(boxes) == 12 * 4 + 2
    assert len(drawn["edges"]) == 12 + 3 * 12 * 12 + 12
    assert all(boxes[edge["from"]]["y"] < boxes[edge["to"]]["y"] for edge in drawn["edges"])
