"""The program in a process of its own: on a terminal, in a pipe, interrupted."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interlace.command_line.invoking import start

pytestmark = pytest.mark.thorough  # starts processes
LINES = [f"{n},{n % 7},2024-01-01 00:{n // 60:02d}:{n % 60:02d}" for n in range(600)]
QUERY = "SELECT a.id, b.id AS other FROM '{}' a, 'r.csv' b WHERE a.x < b.x WINDOW AS (INTERVAL '5 s')"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "r.csv").write_text("\n".join(["id,x,ts", *LINES]) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def leftovers(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir() if each.name.startswith("interlace-") or each.name.endswith(".part")]


def test_a_terminal_shows_a_table_of_the_first_rows_and_the_number_of_all(folder: Path) -> None:
    ours, theirs = pty.openpty()
    process = start("sql", QUERY.format("r.csv"), stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 1 << 16):
            shown += piece
    except OSError:
        pass  # how a terminal says that the program has ended
    assert process.wait(30) == 0
    lines = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown.decode()).replace("\r", "").splitlines()
    header = next(number for number, line in enumerate(lines) if line.split() == ["a.id", "other"])
    assert set(lines[header + 1]) <= {"─", " "}
    assert lines[header + 2].split() == ["0", "1"]
    assert len([line for line in lines[header + 2 :] if re.fullmatch(r" *\d+  +\d+", line)]) == 20
    assert re.search(r"20 of 2,985 rows shown; -o FILE keeps them all", lines[-1])


def test_the_process_ends_behind_the_exit_handlers_with_nothing_taken_apart() -> None:
    """Otherwise a thread that Arrow is just starting makes C++ abort the process now and then."""
    program = """
import atexit
import interlace.__main__ as command_line

class TakenApart:
    def __del__(self):
        print("taken apart")

def run():
    atexit.register(print, "an exit handler")
    return 3

kept = TakenApart()
command_line._run = run
command_line.main()
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "an exit handler\n", "")


def test_a_pipe_gets_lines_without_colours_and_may_be_closed(folder: Path) -> None:
    query = QUERY.format("r.csv").partition("WINDOW")[0]  # more results than fit into a pipe
    process = start("sql", query, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b'"a.id","other"\n'
    assert process.stdout.readline() == b"0,1\n"
    process.stdout.close()
    assert process.wait(30) == 0
    assert process.stderr.read() == b""
    process.stderr.close()
    assert leftovers(folder) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_join_leaves_nothing_behind(folder: Path, number: signal.Signals, code: int) -> None:
    (folder / "out.csv").write_text("before")
    process = start(
        "sql", QUERY.format("-"), "--json", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write("\n".join(["id,x,ts", *LINES[:300]]).encode() + b"\n")
    process.stdin.flush()
    assert process.stdout.readline() == b'{"a.id":0,"other":1}\n'  # the join runs, and waits for more
    process.send_signal(number)
    assert process.wait(30) == code
    assert process.stderr.read() == b"note: event time: ts of -, ts of r\n"
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()
    assert leftovers(folder) == []
