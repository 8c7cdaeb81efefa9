"""The tests of durable logs notice each of the bugs that are planted into a copy of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.topology.durable.planted_bugs import BUGS, ROOM, Bug

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent.relative_to(ROOT)
WATCHFUL = [str(HERE / name) for name in ("test_log.py", "test_crashes.py", "test_interleavings.py")]


def copied(root: Path) -> Path:
    """Copy the source of logs and what tests them."""
    shutil.copytree(ROOT / "topology", root / "topology", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / HERE, root / HERE, ignore=shutil.ignore_patterns("__pycache__"))
    for path in [*ROOT.glob("tests/*.py"), ROOT / "setup.cfg"]:
        shutil.copy(path, root / path.relative_to(ROOT))
    return root


def run_tests(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
    command += [*options, *WATCHFUL]
    environment = os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def test_every_planted_bug_still_fits_the_source() -> None:
    for bug in BUGS:
        assert (ROOT / ROOM / bug.file).read_text().count(bug.right) == 1, f"adapt the bug '{bug.name}' to {bug.file}"


@pytest.mark.thorough
def test_the_copy_passes_without_a_bug(tmp_path: Path) -> None:
    finished = run_tests(copied(tmp_path), "--quick")
    assert finished.returncode == pytest.ExitCode.OK, finished.stdout


SOME = 7
"""One bug in so many is planted in every run; the others with --slow."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "bug",
    [pytest.param(bug, id=bug.name, marks=[pytest.mark.slow] if n % SOME else []) for n, bug in enumerate(BUGS)],
)
def test_a_planted_bug_is_caught(bug: Bug, tmp_path: Path) -> None:
    bug.plant(copied(tmp_path))
    finished = run_tests(tmp_path, "-k", "not objects")
    assert finished.returncode == pytest.ExitCode.TESTS_FAILED, finished.stdout
    assert "failed" in finished.stdout.splitlines()[-1]
    assert " error" not in finished.stdout.splitlines()[-1]
    print(next(line for line in finished.stdout.splitlines() if line.startswith("FAILED")))
