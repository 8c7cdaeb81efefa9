"""Commands about topologies on a cluster: what they show, how they end, and that nothing stays behind."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tests.interlace.command_line.invoking import invoke, start
from tests.topology.on_ray.programs import processes
from tests.topology.waiting import LONG, wait_for
from topology import UnknownTopologyError, attach, stop_topology

CODE = """
import interlace as il

join = il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(10), select=["R.x", "S.x"])

def failing(rows):
    raise LookupError("no such rack")

builder = il.TopologyBuilder("failing")
builder.input("in")
builder.bolt("fails", il.MapBatches(failing)).shuffle_grouping("in")
builder.sink().global_grouping("fails")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "cluster_code.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("cluster_code", None)


@pytest.fixture
def cluster(ray_cluster: None) -> Iterator[None]:
    """The cluster of the tests; what a test has left there is stopped."""
    yield
    for name in ("nearby", "doomed"):
        try:
            stop_topology(name)
        except UnknownTopologyError:
            pass


def deploy(*arguments: str) -> tuple[int, str, str]:
    """Deploy from a process of its own: a cluster that ends with the deploying program is refused."""
    import ray

    address = str(ray.get_runtime_context().gcs_address)
    process = start("deploy", *arguments, "--address", address, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=LONG)
    return process.returncode, out.decode(), err.decode()


@pytest.mark.usefixtures("cluster")
def test_a_join_is_deployed_watched_and_killed(folder: Path) -> None:
    deployed = deploy("cluster_code.py:join", "--name", "nearby", "--placement", "2")
    assert deployed == (0, "'nearby' runs: 2 workers on 1 node\n", "")
    code, _, said = deploy("cluster_code.py:join", "--name", "nearby")
    assert code == 2
    assert "error: a topology called 'nearby' is running" in said

    with attach("nearby") as running:  # as any other program would
        running.open("R", "R"), running.open("S", "S")
        running.send("R", pa.table({"x": [1, 2]}))
        running.send("S", pa.table({"x": [3, 4]}))
        assert next(running.results(timeout=LONG)).num_rows > 0

    listed = invoke("list").stdout.splitlines()
    assert listed[0].split() == ["name", "state", "workers", "tasks", "detached"]
    assert ["nearby", "running", "2"] in [line.split()[:3] for line in listed]
    (found,) = [each for each in json.loads(invoke("list", "--json").stdout) if each["name"] == "nearby"]
    assert (found["state"], found["detached"], len(found["workers"])) == ("running", True, 2)

    shown = invoke("status", "nearby").stdout.splitlines()
    assert shown[0] == "nearby: running, detached"
    assert len(shown) == 4
    assert json.loads(invoke("status", "nearby", "--json").stdout)["workers"][0]["node"]

    described = invoke("describe", "nearby").stdout
    assert described.startswith("topology 'R join S': ")
    assert "collector" in described.partition("worker")[2]
    names = [each["name"] for each in json.loads(invoke("describe", "nearby", "--json").stdout)["components"]]
    assert names[:3] == ["R", "S", "gate"]

    counted = {line.split()[0]: line.split()[1:3] for line in invoke("metrics", "nearby").stdout.splitlines()[1:]}
    assert counted["R"] == ["1", "2"]
    tasks = json.loads(invoke("metrics", "nearby", "--json").stdout)["tasks"]
    assert {task["component"]: task["rows_in"] for task in tasks}["S"] == 2
    looks = invoke("top", "nearby", "--count", "2", "--interval", "0.1", "--json").stdout.splitlines()
    assert len(looks) == 2
    assert {each["component"] for each in json.loads(looks[1])["components"]} >= {"gate", "router", "collector"}
    assert invoke("top", "nearby", "--count", "1", "--tasks").stdout.split()[0] == "component"

    assert invoke("kill", "nearby", "--wait", "0").stdout == "'nearby' has been stopped\n"
    wait_for(lambda: not processes("ray::nearby"), "a process outlived kill")
    for command in ("status", "describe", "metrics", "top", "kill"):
        missing = invoke(command, "nearby")
        assert missing.exit_code == 3
        assert "error: no topology called 'nearby' is running on this cluster" in missing.stderr


@pytest.mark.usefixtures("cluster")
def test_a_topology_that_has_failed_can_be_seen_and_killed(folder: Path) -> None:
    code, out, said = deploy("cluster_code.py:builder", "--name", "doomed", "--placement", "1", "--json")
    assert (code, said) == (0, "")
    assert json.loads(out)["state"] == "running"
    with attach("doomed") as running:
        running.send("in", pa.table({"x": [1]}))
    wait_for(lambda: invoke("status", "doomed").exit_code == 1, "the failure was not seen")
    assert "LookupError: no such rack" in invoke("status", "doomed").stderr
    assert ["doomed", "failed"] in [line.split()[:2] for line in invoke("list").stdout.splitlines()]
    assert invoke("describe", "doomed").exit_code == 1
    assert json.loads(invoke("kill", "doomed", "--json").stdout) == {"name": "doomed", "state": "stopped"}
    assert invoke("status", "doomed").exit_code == 3


@pytest.mark.thorough  # imports Ray in a process of its own
def test_a_cluster_that_is_not_there_is_unreachable() -> None:
    process = start("list", "--address", "127.0.0.1:9", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _, said = process.communicate(timeout=LONG)
    assert process.returncode == 4
    assert said.startswith(b"error: no Ray cluster answers at 127.0.0.1:9")
    assert b"Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["deploy", "cluster_code.py:join"], "Missing option '--name'"),
        (["deploy", "cluster_code.py", "--name", "x"], "with the name one of join, builder"),
        (
            ["deploy", "cluster_code.py:join", "--name", "x", "--placement", "many"],
            "write default, per-task or a number",
        ),
        (["top", "x", "--interval", "0"], "0.0 is not in the range"),
    ],
)
def test_a_mistake_is_a_matter_of_usage(folder: Path, arguments: list[str], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
