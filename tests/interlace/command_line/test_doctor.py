"""`interlace version` and `interlace doctor`: what is there, what is missing, and what that means for the exit code."""

from __future__ import annotations

import configparser
import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from interlace import __version__
from interlace.command_line import checkup
from interlace.command_line.checkup import CHECKS, Found
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
    "check", [check for check in CHECKS if check.__name__ != "ray"], ids=lambda each: each.__name__
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


def test_a_package_of_the_wrong_version_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkup, "requires", lambda name: ["numpy>=99", "surely_not_there", "moto; extra == 'test'"])
    found = checkup.packages()
    assert found.state == "broken"
    assert "is not >=99; surely_not_there is missing" in found.text


@pytest.mark.parametrize(("state", "code"), [("ok", 0), ("missing", 0), ("broken", 1)])
def test_only_what_is_broken_fails(monkeypatch: pytest.MonkeyPatch, state: checkup.State, code: int) -> None:
    monkeypatch.setattr(checkup, "CHECKS", (lambda: Found("thing", state, "what it is", "do this"),))
    shown = invoke("doctor")
    assert shown.exit_code == code
    assert shown.stdout.splitlines()[1].strip() == "→ do this"
    assert json.loads(invoke("doctor", "--json").stdout) == [
        {"name": "thing", "state": state, "text": "what it is", "remedy": "do this"}
    ]
