"""Where the parts of a join run: gate and routers beside the inputs, the collector beside the sinks, elements apart."""

import pytest

from operators import (
    CountWindow,
    Engine,
    HandshakeJoin,
    IndexJoin,
    PanJoin,
    ScaleJoin,
    SplitJoin,
    SPOJoin,
    StreamJoin,
)
from operators.intake.gate import Gate
from operators.results.collector import Collector
from operators.routing.router import Router
from topology import Input, place

ENGINES = [SPOJoin(), ScaleJoin(), SplitJoin(), PanJoin(), IndexJoin(), HandshakeJoin()]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: type(engine).__name__)
@pytest.mark.parametrize("on", ["R.a < S.a", "R.a < S.a OR R.b = S.b"])
def test_elements_are_outside_the_processes_of_router_and_collector(engine: Engine, on: str) -> None:
    topology = StreamJoin("R", "S", on, CountWindow(100), using=engine).topology()
    entry, *elements, exit_ = place(topology, []).workers
    kinds = {node.name: type(node.component) for node in topology.nodes}
    assert {kinds[name] for name, _ in entry.tasks} - {kinds["late"]} == {Input, Gate, Router}
    assert {kinds[name] for name, _ in exit_.tasks} - {kinds["results"]} == {Collector}
    assert ("late", 0) in entry.tasks
    assert ("results", 0) in exit_.tasks
    assert elements
    for worker in elements:
        assert len(worker.tasks) == 1
        assert not {Input, Gate, Router, Collector, kinds["results"]} & {kinds[worker.tasks[0][0]]}
