"""What `LocalRuntime.launch` takes and refuses, and what the handle says of itself."""

import pytest

from topology import LocalRuntime, Topology, TopologyBuilder, TopologyError


def straight() -> Topology:
    builder = TopologyBuilder("straight")
    builder.input("in")
    builder.sink().shuffle_grouping("in")
    return builder.build()


@pytest.mark.parametrize("option", ["detached", "replace"])
def test_a_topology_in_this_process_is_neither_detached_nor_replaced(option: str) -> None:
    with pytest.raises(TopologyError, match=f"{option}=True needs a cluster.*RayRuntime"):
        LocalRuntime().launch(straight(), detached=option == "detached", replace=option == "replace")


def test_it_says_its_name_and_where_its_tasks_run() -> None:
    with LocalRuntime().launch(straight(), name="mine") as running:
        status = running.status()
        assert (running.name, status.name, status.state.value) == ("mine", "mine", "running")
        assert status.workers[0].tasks == (("in", 0), ("results", 0))
        assert str(status).startswith("mine: running\n  this process on ")
    assert running.status().state.value == "stopped"


def test_a_topology_without_a_sink_says_so(caplog: pytest.LogCaptureFixture) -> None:
    builder = TopologyBuilder("to nowhere")
    builder.input("in")
    with LocalRuntime().launch(builder.build()):
        assert "topology 'to nowhere' has no sink" in caplog.text
