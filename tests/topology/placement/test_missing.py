"""What keeps a placement from starting is named: the worker, the resource, and what the cluster has."""

import pytest
from hypothesis import given

from tests.topology.placement.topologies import clusters, same, topologies
from topology import (
    ClusterNode,
    MapBatches,
    Placement,
    Topology,
    TopologyBuilder,
    WorkerPlan,
    Workers,
    missing,
    place,
)
from topology.graph.resources import labels_match

SMALL = ClusterNode("aaaaaaaaaaaa", "10.0.0.1", 1, 4, 2**30, {"zone": "a"})
LARGE = ClusterNode("bbbbbbbbbbbb", "10.0.0.2", 8, 8, 4 * 2**30, {"zone": "b", "disk": "ssd"})


def workers(*cpus: float, memory: int | None = None, strategy: str = "SPREAD", **labels: str) -> Placement:
    plans = tuple(WorkerPlan(f"w{n}/0", ((f"w{n}", 0),), each, memory, labels) for n, each in enumerate(cpus))
    return Placement(plans, strategy)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("placement", "said"),
    [
        (
            workers(1, zone="c"),
            "worker 'w0/0' needs a node with zone=c, but there are zone=a, zone=b",
        ),
        (
            workers(1, gpu="yes"),
            "worker 'w0/0' needs a node with gpu=yes, but no node has a label gpu",
        ),
        (
            workers(1, 9),
            "worker 'w1/0' needs 9 CPUs on one node, but no node has more than 8; the cluster has 12 CPUs on 2 nodes: "
            "8 (bbbbbbbb at 10.0.0.2), 4 (aaaaaaaa at 10.0.0.1)",
        ),
        (
            workers(6, zone="a"),
            "worker 'w0/0' needs 6 CPUs on one node, but no node of those with zone=a has more than 4; the cluster has "
            "12 CPUs on 2 nodes: 8 (bbbbbbbb at 10.0.0.2), 4 (aaaaaaaa at 10.0.0.1)",
        ),
        (
            workers(1, memory=8 * 2**30),
            "worker 'w0/0' needs 8 GiB of memory on one node, but no node has more than 4 GiB free",
        ),
        (
            workers(5, 5),
            "2 workers together need 10 CPUs (worker 'w0/0' alone 5 CPUs), but the cluster has 12 CPUs on 2 nodes: "
            "8 (bbbbbbbb at 10.0.0.2), 4 (aaaaaaaa at 10.0.0.1)",
        ),
        (
            workers(4, 5, strategy="STRICT_PACK"),
            "2 workers together need 9 CPUs on one node (worker 'w1/0' alone 5 CPUs), but the cluster has 12 CPUs on "
            "2 nodes: 8 (bbbbbbbb at 10.0.0.2), 4 (aaaaaaaa at 10.0.0.1)",
        ),
        (
            workers(5, 3, strategy="STRICT_SPREAD", disk="ssd"),
            "2 workers together need 8 CPUs on nodes of their own (worker 'w0/0' alone 5 CPUs), but the cluster has 12 "
            "CPUs on 2 nodes: 8 (bbbbbbbb at 10.0.0.2), 4 (aaaaaaaa at 10.0.0.1)",
        ),
        (
            workers(1, 1, 1, strategy="STRICT_SPREAD"),
            "STRICT_SPREAD needs a node for each of 3 workers, but the cluster has 2 nodes",
        ),
    ],
)
def test_what_is_missing_is_named(placement: Placement, said: str) -> None:
    assert missing(placement, [SMALL, LARGE]) == said


def test_what_fits_lacks_nothing() -> None:
    assert missing(workers(4, 8), [SMALL, LARGE]) is None
    assert missing(workers(1, 4, 7), [SMALL, LARGE]) is None
    assert missing(workers(4, 4, strategy="STRICT_PACK"), [SMALL, LARGE]) is None
    assert missing(workers(4, 8, strategy="STRICT_SPREAD"), [SMALL, LARGE]) is None
    assert missing(workers(2, 2, memory=2**29, zone="a"), [SMALL, LARGE]) is None


def test_what_others_hold_is_missing_only_now() -> None:
    assert missing(workers(3, zone="a"), [SMALL, LARGE]) is None
    assert missing(workers(3, zone="a"), [SMALL, LARGE], free=True) == (
        "worker 'w0/0' needs 3 CPUs on one node, but no node of those with zone=a has more than 1 free; the cluster "
        "has 9 free CPUs on 2 nodes: 8 (bbbbbbbb at 10.0.0.2), 1 (aaaaaaaa at 10.0.0.1)"
    )


def test_processors_and_memory_must_be_on_one_node() -> None:
    many = ClusterNode("m", "10.0.0.3", 8, 8, 10)
    roomy = ClusterNode("r", "10.0.0.4", 1, 1, 2**30)
    assert missing(workers(4, memory=2**20), [many, roomy]) == (
        "worker 'w0/0' needs 4 CPUs and 1 MiB of memory on one node, but no node has both; the cluster has 9 CPUs on "
        "2 nodes: 8 (m at 10.0.0.3), 1 (r at 10.0.0.4)"
    )


def test_a_cluster_without_nodes() -> None:
    assert missing(workers(1), []) == "the cluster has no nodes"


@pytest.mark.parametrize(
    ("selector", "values"),
    [("a", {"a"}), ("!a", {"b", None}), ("in(a, b)", {"a", "b"}), ("in(b,c)", {"b"}), ("!in(a)", {"b", None})],
)
def test_labels_match_as_in_ray(selector: str, values: set[str | None]) -> None:
    found = {value for value in ("a", "b", None) if labels_match({"zone": selector}, {"zone": value} if value else {})}
    assert found == values


@given(topologies(), clusters)
def test_a_default_placement_without_wishes_fits_where_there_is_room(
    topology: Topology, nodes: list[ClusterNode]
) -> None:
    """Each worker's share is half of what is free at most, so a node with a hundredth free per worker is enough."""
    placement = place(topology, nodes)
    if sum(node.cpus_free for node in nodes) >= 0.02 * len(placement.workers) * max(1, len(nodes)):
        assert missing(placement, nodes, free=True) is None


def test_one_label_that_nobody_has_is_found_through_place() -> None:
    builder = TopologyBuilder("gpu")
    builder.input("in")
    builder.bolt("model", MapBatches(same), parallelism=2).shuffle_grouping("in").resources(
        labels={"gpu": "in(t4, l4)"}
    )
    placement = place(builder.build(), [SMALL, LARGE], Workers(3))
    assert missing(placement, [SMALL, LARGE]) == (
        "worker 'model/0' needs a node with gpu=in(t4, l4), but no node has a label gpu"
    )
