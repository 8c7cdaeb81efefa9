"""Logs, errors and the page of topologies on a cluster; and `kill --wait`, which waits for readers."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import ray

from tests.interlace.command_line.invoking import invoke, start
from tests.topology.waiting import LONG, wait_for
from topology import UnknownTopologyError, attach, stop_topology

CODE = """
import logging
import sys
import interlace as il

def talks(rows):
    print("saw", rows.num_rows, "rows")
    logging.getLogger("racks").info("asked for a rack")
    print("a rack is slow", file=sys.stderr)
    if rows["x"][0].as_py() == 13:
        raise LookupError("no such rack")
    return rows

builder = il.TopologyBuilder("talkative")
builder.input("in")
builder.bolt("talks", il.MapBatches(talks)).shuffle_grouping("in")
builder.sink().global_grouping("talks")
"""


@pytest.fixture
def deployed(ray_cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a cluster on which 'talkative' runs."""
    (tmp_path / "talk_code.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    address = str(ray.get_runtime_context().gcs_address)
    options = ("--name", "talkative", "--placement", "1", "--address", address)
    process = start("deploy", "talk_code.py:builder", *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.communicate(timeout=LONG)[1] == b""
    assert process.returncode == 0
    yield address
    try:
        stop_topology("talkative")
    except UnknownTopologyError:
        pass


def asked(url: str, token: str, method: str = "GET") -> Any:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"}, method=method)
    with urllib.request.urlopen(request, timeout=LONG) as answer:
        body = answer.read().decode()
    return json.loads(body) if body.startswith("{") else body


def test_what_code_prints_and_why_it_failed_reach_the_person(deployed: str) -> None:
    page = start("ui", "--port", "0", "--json", "--address", deployed, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        with attach("talkative") as running:
            running.send("in", pa.table({"x": [1, 2]}))
            next(running.results(timeout=LONG))
            wait_for(lambda: "saw 2 rows" in invoke("logs", "talkative").stdout)
            assert page.stdout is not None
            told = json.loads(page.stdout.readline())
            base, token = f"{told['url']}api/v1/topologies", told["token"]
            assert [each["name"] for each in asked(base, token)["topologies"]] == ["talkative"]
            wait_for(lambda: asked(f"{base}/talkative", token)["rows_out"] == 2)
            assert asked(f"{base}/talkative/logs", token)["lines"][0]["component"] == "talks"
            assert 'interlace_up{topology="talkative"} 1' in asked(f"{told['url']}metrics", token)
            assert invoke("errors", "talkative").stderr == "'talkative' has had no failures\n"
            running.send("in", pa.table({"x": [13]}))
        wait_for(lambda: invoke("status", "talkative").exit_code == 1, "the failure was not seen")
        wait_for(lambda: "saw 1 rows" in invoke("logs", "talkative").stdout, "the last line was lost")
        assert "saw 1 rows" in invoke("logs", "talkative", "-f").stdout  # and ends, because nothing more comes
        (line, *_) = [json.loads(each) for each in invoke("logs", "talkative", "--json").stdout.splitlines()]
        assert (line["level"], line["text"], line["component"], line["task"]) == ("INFO", "saw 2 rows", "talks", 0)
        assert line["topology"] == "talkative"
        assert line["worker"]
        assert "INFO    talks[0] asked for a rack" in invoke("logs", "talkative").stdout
        assert "WARNING talks[0] a rack is slow" in invoke("logs", "talkative").stdout
        # The failure is told at once; what was printed just before it comes with the worker's next sign of life.
        wait_for(lambda: "saw 1 rows" in invoke("logs", "talkative", "--component", "talks").stdout)
        assert invoke("logs", "talkative", "--component", "other").stdout == ""
        shown = invoke("errors", "talkative").stdout
        assert "failed in talks[0]" in shown
        assert "LookupError: no such rack" in shown
        (error,) = json.loads(invoke("errors", "talkative", "--json").stdout)
        assert (error["state"], error["task"]) == ("failed", "talks/0")
        wait_for(lambda: asked(f"{base}/talkative", token)["state"] == "failed")
        asked(f"{base}/talkative/actions/stop", token, "POST")
        assert invoke("logs", "talkative").exit_code == 3
    finally:
        page.terminate()
        page.communicate(timeout=LONG)
    assert page.returncode == 0  # asking it to end is how it ends well


def test_kill_waits_until_the_results_are_read(deployed: str) -> None:
    with attach("talkative") as running:
        assert invoke("deactivate", "talkative").stdout == "'talkative' takes no rows until it is activated\n"
        assert invoke("status", "talkative").stdout.startswith("talkative: running, deactivated, detached\n")
        told = json.loads(invoke("activate", "talkative", "--json").stdout)
        assert told == {"name": "talkative", "active": True}
        assert json.loads(invoke("status", "talkative", "--json").stdout)["active"]
        running.send("in", pa.table({"x": [1, 2, 3]}))
        process = start(
            "kill",
            "talkative",
            "--wait",
            str(LONG),
            "--address",
            deployed,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        wait_for(lambda: bool(running.metrics().of("results")[0].own["ended"]))
        assert running.metrics().of("results")[0].own["unread_rows"] == 3
        assert process.poll() is None
        read: list[int] = []
        reading = threading.Thread(target=lambda: read.extend(rows.num_rows for rows in running.results()))
        reading.start()
        out, _ = process.communicate(timeout=LONG)
        reading.join()
    assert (process.returncode, out, sum(read)) == (0, b"'talkative' has been stopped\n", 3)


def test_kill_says_when_results_were_left_unread(deployed: str) -> None:
    with attach("talkative") as running:
        running.send("in", pa.table({"x": [1, 2, 3]}))
        wait_for(lambda: bool(running.metrics().of("results")[0].own["unread_rows"]))
    killed = invoke("kill", "talkative", "--wait", "0", "--json")
    assert killed.exit_code == 1
    assert json.loads(killed.stdout) == {"name": "talkative", "state": "stopped", "drained": False}
    assert "results of 'talkative' were left unread after 0 s" in killed.stderr
    assert invoke("status", "talkative").exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rebalance", "x"], "Missing argument"),
        (["rebalance", "x", "work=none"], "work=none: the number of tasks is a whole number from 1 on"),
        (["rebalance", "x", "work=0"], "work=0: the number of tasks is a whole number from 1 on"),
        (["ui", "--certificate", "x.pem"], "--certificate and --key belong together"),
    ],
)
def test_mistakes_are_told_before_anything_is_done(arguments: list[str], message: str) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
