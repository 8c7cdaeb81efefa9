"""A program joins the cluster that Ray itself would join, or learns within 15 s what is wrong and what to do."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ray

from tests.cluster.conftest import MakeNetwork
from tests.cluster.namespaces import Machine
from tests.cluster.ray_nodes import PORT, address_of, start_nodes

TOKEN = "0123456789abcdef" * 4
AUTHENTICATED = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
PROMISED_SECONDS = 15
"""What the documentation promises, not a wish: every wait on the way has a deadline, and they add up to less."""

Attempt = Callable[..., list[dict[str, Any]]]

CONNECTED = """
import ray
from topology import ClusterError
from topology.on_ray.cluster import membership

ray.init(address="{address}", namespace="mine", logging_level="ERROR")
for address in (None, "auto", "{address}"):
    membership.join(address)
    membership.leave()
    assert ray.is_initialized()
for address in ("local", "10.77.0.99:6379"):
    try:
        membership.join(address)
    except ClusterError as error:
        assert "is connected to the Ray cluster at {address} already" in str(error), error
    else:
        raise AssertionError("joined another cluster")
assert ray.get_runtime_context().namespace == "mine"
"""


@pytest.fixture(scope="module")
def network(machines: MakeNetwork, tmp_path_factory: pytest.TempPathFactory) -> list[Machine]:
    """Two machines; the first is the head, and only node, of a cluster that wants a token."""
    made = machines(2).machines
    start_nodes(made[:1], tmp_path_factory.mktemp("ray"), lambda _: AUTHENTICATED)
    return made


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    """Run the program of attempts on a machine, and return what came of each."""

    def run(machine: Machine, *cases: dict[str, Any]) -> list[dict[str, Any]]:
        program = Path(__file__).with_name("joining_program.py")
        running = machine.start("python", program, json.dumps(cases), output=tmp_path / "output")
        assert running.wait(180) == 0, running.output
        lines = [line for line in running.output.splitlines() if line.startswith("{")]
        assert len(lines) == len(cases), running.output
        return [json.loads(line) for line in lines]

    return run


def check_refusals(outcomes: list[dict[str, Any]], *messages: str) -> None:
    """Each attempt ended in time, with an error that says this, and left nothing connected."""
    for outcome, message in zip(outcomes, messages, strict=True):
        assert message in outcome.get("error", outcome)
        assert not outcome["connected"]
        assert outcome["seconds"] < PROMISED_SECONDS


def test_a_wrong_address_is_refused_in_time(network: list[Machine], attempt: Attempt) -> None:
    head, other = network
    # A neighbour that never answers: packets to it vanish, as behind a firewall that drops them.
    other.run("ip", "neighbour", "add", "10.77.0.99", "lladdr", "02:00:00:00:00:99", "dev", "eth0")
    check_refusals(
        attempt(
            other,
            {"address": f"{head.address}:{PORT + 1}", "settings": AUTHENTICATED},
            {"address": f"10.77.0.99:{PORT}", "settings": AUTHENTICATED},
            {"address": "nowhere.invalid:6379", "settings": AUTHENTICATED},
            {"settings": {**AUTHENTICATED, "RAY_ADDRESS": f"{head.address}:{PORT + 1}"}},
            {"address": head.address, "settings": AUTHENTICATED},
            {"address": "auto"},
        ),
        f"no Ray cluster answers at {head.address}:{PORT + 1} (connection refused): is the head node running",
        f"no Ray cluster answers at 10.77.0.99:{PORT} (no answer)",
        "no machine is called 'nowhere.invalid'",
        f"no Ray cluster answers at {head.address}:{PORT + 1}",
        "write host:port, or 'auto', or 'local'",
        "no Ray cluster runs on this machine: start one with `ray start --head`",
    )


def test_what_is_no_head_of_a_cluster_is_refused_in_time(network: list[Machine], attempt: Attempt) -> None:
    head = network[0]
    check_refusals(
        attempt(
            head,
            {"serving": "silence", "settings": AUTHENTICATED},
            {"serving": "http", "settings": AUTHENTICATED},
            {"address": f"{head.address}:{worker_port(head)}", "settings": AUTHENTICATED},
        ),
        "is no Ray cluster (no answer)",
        "is no Ray cluster: is the head node running",
        "is not the head of a Ray cluster; `ray start --head` prints the address to use",
    )


def test_a_token_that_is_wrong_missing_or_no_token_is_refused_in_time(network: list[Machine], attempt: Attempt) -> None:
    address = address_of(network[0])
    check_refusals(
        attempt(
            network[0],
            {"address": address, "settings": {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN[::-1]}},
            {"address": address},
            {"address": address, "settings": {"RAY_AUTH_MODE": "token"}},
            {"address": address, "settings": {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": "/tmp/ray/none"}},
            {"address": address, "settings": {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "käse"}},
        ),
        "refuses the token of this program: set RAY_AUTH_MODE=token and",
        "refuses the token of this program: set RAY_AUTH_MODE=token and",
        "no authentication token was found",
        "file cannot be opened or is empty: /tmp/ray/none",
        "has characters that no token has",
    )


def test_addresses_of_other_kinds_are_refused_with_the_way_out(network: list[Machine], attempt: Attempt) -> None:
    head = network[0]
    check_refusals(
        attempt(
            head,
            {"address": f"ray://{head.address}:10001"},
            {"settings": {"RAY_ADDRESS": f"ray://{head.address}:10001"}},
            {"settings": {"RAY_ADDRESS": f"http://{head.address}:8265"}},
        ),
        "Run it on the cluster with `ray job submit",
        "Run it on the cluster with `ray job submit",
        "is a web address, as `ray job submit` wants it",
    )


def test_a_machine_that_is_no_node_of_the_cluster_is_told_how_to_become_one(
    network: list[Machine], attempt: Attempt
) -> None:
    head, other = network
    check_refusals(
        attempt(other, {"address": address_of(head), "settings": AUTHENTICATED}),
        f"run `ray start --address={address_of(head)}` here first, or run the program on a node of the cluster",
    )


def test_a_program_joins_what_ray_would_join(network: list[Machine], attempt: Attempt, tmp_path: Path) -> None:
    head = network[0]
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    outcomes = attempt(
        head,
        {"address": address_of(head), "settings": AUTHENTICATED},
        {"address": address_of(head), "settings": {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(token)}},
        {"settings": {**AUTHENTICATED, "RAY_ADDRESS": address_of(head)}},
        {"settings": AUTHENTICATED},
        {"settings": {"RAY_AUTH_TOKEN": TOKEN}},
        {"address": "auto", "settings": AUTHENTICATED},
        {"address": "local", "settings": AUTHENTICATED},
    )
    assert [outcome.get("joined", outcome) == address_of(head) for outcome in outcomes] == 6 * [True] + [False]
    assert "joined" in outcomes[-1]
    assert not any(outcome["connected"] for outcome in outcomes)


def test_a_mark_of_a_cluster_that_has_ended_is_ignored(network: list[Machine], attempt: Attempt) -> None:
    other = network[1]
    other.run("sh", "-c", f"echo {other.address}:{PORT} > /tmp/ray/ray_current_cluster")
    own, named = attempt(other, {}, {"address": "auto"})
    assert own.get("nodes", own) == 1
    assert f"no Ray cluster answers at {other.address}:{PORT} (connection refused)" in named["error"]


def test_other_versions_are_refused_with_both_named(network: list[Machine], attempt: Attempt) -> None:
    address = address_of(network[0])
    right = {"ray_version": ray.__version__, "python_version": platform.python_version()}
    claims = [{**right, "ray_version": "2.1.0"}, {**right, "python_version": "3.9.1"}, right]
    *refused, joined = attempt(
        network[0],
        *({"address": address, "settings": AUTHENTICATED, "cluster_runs": versions} for versions in claims),
    )
    check_refusals(refused, "    Ray: 2.1.0", "    Python: 3.9.1")
    assert all(f"    Ray: {ray.__version__}" in outcome["error"] for outcome in refused)
    assert joined.get("joined", joined) == address


def test_a_connection_of_the_program_itself_is_used_and_left_alone(network: list[Machine], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(CONNECTED.format(address=address_of(network[0])))
    running = network[0].start("python", program, output=tmp_path / "output", settings=AUTHENTICATED)
    assert running.wait() == 0, running.output


def worker_port(machine: Machine) -> int:
    """A port of the machine's raylet that speaks gRPC but is not the head's."""
    lines = machine.run("ss", "-Hltnp").splitlines()
    return next(int(line.split()[3].rpartition(":")[2]) for line in lines if '"raylet"' in line)
