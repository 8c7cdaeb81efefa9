"""`interlace version` and `interlace doctor`: what is there, what is missing, and what that means for the exit code."""

from __future__ import annotations

import configparser
import importlib
import json
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from interlace import __version__
from interlace.command_line import checkup, cluster_checkup
from interlace.command_line.checkup import CHECKS, Found
from interlace.command_line.cluster_checkup import CLUSTER_CHECKS
from tests.interlace.command_line.invoking import ROOT, invoke

HEAVY = ("ray", "pyspark", "numba", "numpy", "pyarrow", "pandas", "sqlglot", "rich", "yaml")


@pytest.mark.parametrize("arguments", [["version"], ["--help"], ["sql", "--help"], ["top", "--help"]])
def test_version_and_help_load_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys\nfrom interlace.command_line.program import program\n"
        f"program.main({arguments!r}, standalone_mode=False)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert finished.stdout.splitlines()[-1] == "[]", finished.stderr


def test_the_installed_program_is_this_one() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    scripts = settings["options.entry_points"]["console_scripts"].strip().splitlines()
    assert scripts == ["interlace = interlace.__main__:main"]
    assert callable(importlib.import_module("interlace.__main__").main)


def test_the_version_is_that_of_the_package() -> None:
    assert invoke("version").stdout == f"interlace {__version__}\n"
    assert json.loads(invoke("version", "--json").stdout) == {"version": __version__}


@pytest.mark.parametrize(
    "check", [check for check in (*CHECKS, *CLUSTER_CHECKS) if check.__name__ != "ray"], ids=lambda each: each.__name__
)
def test_every_check_comes_to_an_end_and_says_what_it_found(check: object) -> None:
    found = check()  # type: ignore[operator]
    assert found.text
    assert bool(found.remedy) == (found.state != "ok")


def test_java_that_is_missing_is_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = checkup.spark()
    assert found.state == "missing"
    assert "Spark needs Java" in found.text
    assert "openjdk" in found.remedy.lower()


def test_a_temporary_directory_that_cannot_be_used_is_broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    found = checkup.temporary_files()
    assert found.state == "broken"
    assert "TMPDIR" in found.remedy


def test_little_memory_is_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "_free_memory", lambda: 100 << 20)
    assert checkup.memory() == Found("memory", "missing", "0.1 GiB free", "windows live in memory: end other programs")


def test_a_port_that_is_taken_is_told_with_the_way_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_checkup, "cluster_here", lambda: None)
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setattr(cluster_checkup, "RAY_PORT", taken.getsockname()[1])
        monkeypatch.setattr(cluster_checkup, "PAGE_PORT", other.getsockname()[1])
        found = cluster_checkup.ports()
        monkeypatch.setattr(cluster_checkup, "cluster_here", lambda: f"10.0.0.1:{taken.getsockname()[1]}")
        of_ray = cluster_checkup.ports()
    assert found.state == "missing"
    assert found.text.count("is taken") == 2
    assert found.remedy == (
        "start Ray on another one: ray start --head --port=6380; serve the page on another one: interlace ui --port 0"
    )
    assert "is that of the cluster here" in of_ray.text
    assert "ray start" not in of_ray.remedy


def test_ray_needs_a_directory_it_can_write_to_by_a_short_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path / "nowhere"))
    assert "cannot be written to, or is not there" in cluster_checkup.ray_files().text
    long = tmp_path / ("x" * 80)
    long.mkdir()
    monkeypatch.setenv("RAY_TMPDIR", str(long))
    assert "is long" in cluster_checkup.ray_files().text


def test_a_machine_without_a_network_or_shared_memory_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cluster_checkup, "_own_address", lambda: None)
    assert cluster_checkup.address().state == "missing"
    monkeypatch.setattr(cluster_checkup, "_own_address", lambda: "192.0.2.1")
    assert "nothing can listen on 192.0.2.1" in cluster_checkup.address().text
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(cluster_checkup, "SHARED_MEMORY", tmp_path / "nowhere")
    assert cluster_checkup.shared_memory().state == "missing"
    monkeypatch.setattr(cluster_checkup, "SHARED_MEMORY", tmp_path)
    monkeypatch.setattr(cluster_checkup, "LEAST_SHARED_MEMORY", 1 << 60)
    assert "--shm-size" in cluster_checkup.shared_memory().remedy


def test_a_package_of_the_wrong_version_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "requires", lambda name: ["numpy>=99", "surely_not_there", "moto; extra == 'test'"])
    found = checkup.packages()
    assert found.state == "broken"
    assert "is not >=99; surely_not_there is missing" in found.text


@pytest.mark.parametrize(("state", "code"), [("ok", 0), ("missing", 0), ("broken", 1)])
def test_only_what_is_broken_fails(monkeypatch: pytest.MonkeyPatch, state: checkup.State, code: int) -> None:
    monkeypatch.setattr(checkup, "CHECKS", (lambda: Found("thing", state, "what it is", "do this"),))
    monkeypatch.setattr(cluster_checkup, "CLUSTER_CHECKS", ())
    shown = invoke("doctor")
    assert shown.exit_code == code
    assert shown.stdout.splitlines()[1].strip() == "→ do this"
    assert json.loads(invoke("doctor", "--json").stdout) == [
        {"name": "thing", "state": state, "text": "what it is", "remedy": "do this"}
    ]
