"""A share of a topology holds the components of its own tasks, and the graph of all."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from operators import CountWindow, SPOJoin, StreamJoin
from topology import TaskContext, Topology, TopologyBuilder, bolt
from topology.graph.share import Elsewhere, share
from topology.process.state import with_state
from topology.steps.sequenced import ticks_due

WINDOW = CountWindow(100, 10)
JOIN = StreamJoin(left="R", right="S", on="R.x < S.x AND R.y > S.y", window=WINDOW, select=["R.x"], using=SPOJoin())


@pytest.fixture
def topology() -> Topology:
    return JOIN.topology()


def test_a_share_has_the_components_of_its_tasks_and_the_graph_of_all(topology: Topology) -> None:
    part = share(topology, [("gate", 0), ("po-join", 1)])
    assert part.node("gate") == topology.node("gate")
    assert part.node("po-join") == topology.node("po-join")
    assert {node.name for node in part.nodes if node.component == Elsewhere()} == {
        "router", "mutable", "permutation", "collector",
    }  # fmt: skip
    assert part.node("R").component != topology.node("R").component  # whose check imports the whole condition
    assert part.task_names == topology.task_names
    assert part.edges == topology.edges
    assert (list(part.inputs), part.sinks, part.main_sink) == (list(topology.inputs), topology.sinks, "results")


def test_a_share_builds_no_task_of_another(topology: Topology) -> None:
    with pytest.raises(AssertionError, match="'router' run in other processes"):
        share(topology, [("gate", 0)]).node("router").component.build(TaskContext("router"))


def test_a_process_imports_the_code_of_its_own_components_only(topology: Topology, tmp_path: Path) -> None:
    packed = tmp_path / "share"
    packed.write_bytes(pickle.dumps(share(topology, [("po-join", 0)])))
    program = f"import pickle, sys; pickle.load(open({str(packed)!r}, 'rb')); print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert "operators.engines.spo_join.po_join_element" in loaded
    assert not {"operators.intake.gate", "operators.routing.router", "operators.results.collector"} & set(loaded)


def test_tasks_elsewhere_hear_of_the_ticks_of_a_sequencer() -> None:
    builder = TopologyBuilder("ticking")
    builder.input("rows")
    builder.bolt("slow", bolt(tick=2.0)(lambda rows: None)).shuffle_grouping("rows")
    builder.sink().global_grouping("slow")
    due = ticks_due(share(with_state(builder.build()), [("slow", 0)]), "slow")
    assert due is not None
    assert [due.is_due(clock) for clock in (0.0, 0.5, 2.0)] == [True, False, True]
