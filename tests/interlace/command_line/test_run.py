"""`interlace run`: joins and topologies of Python and YAML files, over files."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interlace.command_line.invoking import invoke, start

CODE = """
import interlace as il
import pyarrow as pa
import pyarrow.compute as pc

def hot(rows):
    return rows.filter(pc.greater(rows["power"], 5.0))

def failing(rows):
    raise LookupError("no such rack")

join = il.StreamJoin("R", "S", "R.power < S.power", il.CountWindow(10), select=["R.rack", "S.rack"])
timed = il.StreamJoin("R", "S", "R.power < S.power", il.TimeWindow(10), select=["R.rack", "S.rack"], event_time="ts")

def racks(function=hot):
    builder = il.TopologyBuilder("racks")
    builder.input("readings", il.Input(pa.schema([("rack", pa.int64()), ("power", pa.float64())])))
    builder.bolt("chosen", il.MapBatches(function), parallelism=2).shuffle_grouping("readings")
    builder.sink().global_grouping("chosen")
    return builder

def failing_racks():
    return racks(failing).build()

def broken():
    return 1 / 0

number = 7
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "racks_code.py").write_text(CODE)
    (tmp_path / "readings.csv").write_text("rack,power,ts\n1,4.0,3\n2,6.0,1\n3,9.5,20\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("racks_code", None)


BOTH = ["-i", "R=readings.csv", "-i", "S=readings.csv"]


def test_a_join_of_three_streams_runs_over_files_in_the_order_of_their_event_times(folder: Path) -> None:
    code = """
import interlace as il
three = il.MultiJoin(
    ["R", "S", "T"], "R.power < S.power AND S.power < T.power", il.TimeWindow(100),
    select=["R.rack", "S.rack", "T.rack"], event_time="ts",
)
"""
    (folder / "racks_code.py").write_text(code)
    inputs = [*BOTH, "-i", "T=readings.csv"]
    result = invoke("run", "racks_code.py:three", *inputs, "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [{"R.rack": 1, "S.rack": 2, "T.rack": 3}]
    assert "is not in the order of ts: sorting it" in result.stderr
    assert "results" in invoke("run", "racks_code.py:three", "--dry-run").stdout


def test_a_join_runs_over_files(folder: Path) -> None:
    result = invoke("run", "racks_code.py:join", *BOTH, "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"R.rack": 1, "S.rack": 2},
        {"R.rack": 1, "S.rack": 3},
        {"R.rack": 2, "S.rack": 3},
    ]


def test_files_are_sorted_by_the_event_time_of_a_join(folder: Path) -> None:
    result = invoke("run", "racks_code.py:timed", *BOTH)
    assert result.stdout.splitlines()[1:] == ["1,2"]
    assert "'readings.csv' is not in the order of ts: sorting it" in result.stderr


def test_a_topology_runs_and_gets_the_types_that_it_wants(folder: Path) -> None:
    (folder / "whole.csv").write_text("power,rack\n4,1\n6,2\n")
    assert invoke("run", "racks_code.py:racks", "-i", "readings=whole.csv").stdout.splitlines()[1:] == ["2,6"]


def test_results_go_to_a_file(folder: Path) -> None:
    invoke("run", "racks_code.py:racks", "-i", "readings=readings.csv", "-o", "out.csv")
    assert (folder / "out.csv").read_text().splitlines()[1:] == ["2,6", "3,9.5"]


def test_a_dry_run_shows_the_plan(folder: Path) -> None:
    shown = invoke("run", "racks_code.py:racks", "-i", "readings=missing.csv", "--dry-run").stdout
    assert shown.startswith("topology 'racks': 3 components\n")
    assert shown.endswith("readings reads missing.csv\n")
    plan = json.loads(invoke("run", "racks_code.py:racks", "--dry-run", "--json").stdout)
    assert [each["name"] for each in plan["components"]] == ["readings", "chosen", "results"]


def test_a_component_that_fails_ends_the_run_and_is_named(folder: Path) -> None:
    failed = invoke("run", "racks_code.py:failing_racks", "-i", "readings=readings.csv", "-o", "out.csv")
    assert failed.exit_code == 1
    assert "error: component 'chosen', task " in failed.stderr
    assert "LookupError: no such rack" in failed.stderr
    assert not list(folder.glob("*out.csv*"))


MISTAKES = [
    (["racks_code.py"], 2, "with the name one of join, timed"),
    (["racks_code.py:jion"], 3, "has no 'jion'; did you mean join?"),
    (["rack_code.py:join"], 3, "no file 'rack_code.py'; did you mean racks_code.py?"),
    (["racks_code.py:number"], 2, "'number' of 'racks_code.py' is a int"),
    (["racks_code.py:broken"], 2, "broken() of 'racks_code.py' failed: line 26: ZeroDivisionError"),
    (["readings.csv"], 2, "neither FILE.py:NAME nor FILE.yaml"),
    (["racks_code.py:join", "-i", "R=readings.csv"], 2, "the input 'S' has no rows: give --input S=FILE"),
    (["racks_code.py:join", "-i", "Q=readings.csv"], 2, "there is no input 'Q'; inputs: R, S"),
    (["racks_code.py:join", *BOTH, "-i", "R=x"], 2, "--input R is given twice"),
    (["racks_code.py:join", "-i", "R=none.csv", "-i", "S=readings.csv"], 3, "there is no file 'none.csv'"),
    (["racks_code.py:racks", "-i", "readings=readings.csv", "--sink", "resluts"], 2, "did you mean results?"),
    (["wrong.py:x"], 2, "'wrong.py' cannot be loaded: line 2: SyntaxError"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), MISTAKES)
def test_a_mistake_gets_a_message_and_a_code(folder: Path, arguments: list[str], code: int, message: str) -> None:
    (folder / "wrong.py").write_text("x = 1\ny = (\n")
    result = invoke("run", *arguments)
    assert message.replace("SyntaxError", "'(' was never closed") in result.stderr
    assert result.exit_code == code
    assert "Traceback" not in result.stderr


@pytest.mark.thorough  # starts a process
def test_ctrl_c_ends_a_run_without_a_trace(folder: Path) -> None:
    process = start(
        "run", "racks_code.py:racks", "-i", "readings=-",
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"rack,power\n1,9.5\n")
    process.stdin.flush()
    assert process.stdout.readline() == b'"rack","power"\n'
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, b"")
