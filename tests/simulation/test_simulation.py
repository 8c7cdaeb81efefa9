"""Seeds of the simulation: whatever fails, results are those of the oracle, in order, each once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.planted_bugs import BUGS, Bug
from tests.simulation.sensitivity import seeds_to_catch

ROOT = Path(__file__).parents[2]
QUICK_BUG = "what was taken is not recorded"
"""One that few seeds catch; the others are planted with --slow."""


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("first", [0, 100, 200])
def test_nothing_is_lost_doubled_or_out_of_order(first: int) -> None:
    done = simulate("--first", str(first), "--seeds", "100")
    assert done.returncode == 0, done.stdout
    assert "lost 0, duplicated 0, misordered 0" in done.stdout


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [simulate("--seed", "7").stdout.rpartition('"seconds"') for _ in range(2)]
    assert runs[0][0] == runs[1][0]
    assert '"faults"' in runs[0][0]


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(bug: Bug) -> None:
    assert seeds_to_catch(bug, 400) is not None


@pytest.mark.thorough
def test_a_bug_that_shows_soon_is_caught() -> None:
    assert seeds_to_catch(next(bug for bug in BUGS if bug.name == QUICK_BUG), 20) is not None


def test_every_planted_bug_still_fits_the_source() -> None:
    for bug in BUGS:
        assert (ROOT / bug.file).read_text().count(bug.right) == 1, f"adapt the bug '{bug.name}' to {bug.file}"
