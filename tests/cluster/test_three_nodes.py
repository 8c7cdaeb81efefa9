"""A join on three machines: exact, encrypted, clear about a machine that is lost, and gone when it ends."""

from __future__ import annotations

import json
import secrets
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.cluster import join_program
from tests.cluster.conftest import MakeNetwork
from tests.cluster.namespaces import Machine, Network, Program
from tests.cluster.ray_nodes import start_nodes
from tests.cluster.waiting import Recording, wait_until_gone
from tests.comparison import assert_same_result
from tests.oracle import Comparison, Count, Linear, oracle

LONG = 300
TERMS = (
    Comparison(Linear("power"), "<", Linear("power")),
    Comparison(Linear("cool"), ">", Linear("cool")),
)
PROGRAM = Path(join_program.__file__)
AUTHENTICATED = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
ENDED_SECONDS = 30
"""What the documentation promises: so long after a program was killed, nothing of it runs."""

Run = Callable[..., Program]


@pytest.fixture(scope="module")
def network(machines: MakeNetwork, tmp_path_factory: pytest.TempPathFactory) -> Network:
    made = machines(3)
    start_nodes(made.machines, tmp_path_factory.mktemp("ray"), lambda _: AUTHENTICATED)
    return made


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def start(machine: Machine, *arguments: str | Path) -> Program:
        output = tmp_path / f"{machine.name}-{arguments[0]}"
        return machine.start("python", PROGRAM, *arguments, output=output, settings=AUTHENTICATED)

    return start


def told(program: Program) -> dict[str, Any]:
    """What a program has told; a later fact of the same name replaces an earlier one."""
    facts: dict[str, Any] = {}
    for line in program.output.splitlines():
        if line.startswith("{"):
            facts.update(json.loads(line))
    return facts


def actors(machines: list[Machine]) -> dict[str, dict[int, str]]:
    return {machine.name: found for machine in machines if (found := machine.actors())}


def test_a_join_over_three_nodes_is_exact_and_nothing_of_it_can_be_read_on_the_wire(
    network: Network, run: Run, tmp_path: Path
) -> None:
    tables = {"R": join_program.rows(1, 2000), "S": join_program.rows(2, 2000)}
    for stream, table in tables.items():
        with pa.ipc.new_file(tmp_path / stream, table.schema) as file:
            file.write_table(table)
    recording = Recording(network, tmp_path)
    program = run(network.machines[0], "collect", tmp_path, tmp_path / "results")
    assert program.wait(LONG) == 0, program.output
    packets = recording.end()

    expected = oracle(
        {"R": {"R-0": tables["R"]}, "S": {"S-0": tables["S"]}}, ("R", "R"), ("S", "S"), TERMS,
        (Count(400), Count(300)), select=["R.id", "S.id", "R.text"],
    )  # fmt: skip
    assert_same_result(pa.ipc.open_file(tmp_path / "results").read_all(), expected.table)
    facts = told(program)
    assert facts["nodes"] == [machine.address for machine in network.machines]
    assert facts["workers"] >= 4
    assert facts["encrypted"]
    assert all(location.startswith("grpc+tls://10.77.0.") for location in facts["locations"])
    assert len(packets) > tables["R"].nbytes
    assert AUTHENTICATED["RAY_AUTH_TOKEN"].encode() in packets  # the recording sees what is not encrypted
    assert b"canary" not in packets
    wait_until_gone(lambda: actors(network.machines))


def test_a_detached_join_is_used_from_another_machine(network: Network, run: Run) -> None:
    first, second, _ = network.machines
    launching = run(first, "detach", "shared")
    assert launching.wait(LONG) == 0, launching.output
    assert actors(network.machines), "it ended with the program that launched it"
    using = run(second, "use", "shared")
    assert using.wait(LONG) == 0, using.output
    facts = told(using)
    tables = {stream: {f"{stream}-0": join_program.rows(seed, 500)} for stream, seed in (("R", 1), ("S", 2))}
    expected = oracle(tables, ("R", "R"), ("S", "S"), TERMS, (Count(400), Count(300))).table
    assert (facts["state"], facts["detached"], facts["rows"]) == ("running", True, expected.num_rows)
    assert "shared" in facts["text"]
    wait_until_gone(lambda: actors(network.machines))


@pytest.mark.slow  # tests/topology/on_ray/test_detached.py kills a program on one machine in every run
def test_nothing_outlives_a_program_that_was_killed(network: Network, run: Run) -> None:
    program = run(network.machines[0], "flow")
    program.wait_for('"flowing"', LONG)
    assert len(actors(network.machines)) == 3
    program.end(signal.SIGKILL)
    wait_until_gone(lambda: actors(network.machines), ENDED_SECONDS)


def test_a_node_that_is_cut_off_is_named_and_nothing_is_left_running(network: Network, run: Run) -> None:
    first, second, third = network.machines
    program = run(first, "flow")
    program.wait_for('"flowing"', LONG)
    lost = [(component, task) for component, task, node in told(program)["places"] if node == third.address]
    assert lost, "no worker is on the machine that is to be lost"
    third.cut_off()
    try:
        assert program.wait(LONG) == 0, program.output
        facts = told(program)
        assert facts["error"] == "TaskError", program.output
        named = f"on node {third.address}: no sign of life for"
        assert any(f"component '{name}', task {task}" in facts["text"] for name, task in lost), facts["text"]
        assert named in facts["text"]
        assert "cut off from the network" in facts["text"]
        wait_until_gone(lambda: actors([first, second]))
        wait_until_gone(third.actors)
    finally:
        third.reconnect()
