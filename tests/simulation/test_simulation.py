"""Seeds of the simulation: whatever fails, results are those of the oracle, in order, each once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation import ledger
from tests.simulation.planted_bugs import BUGS, Bug
from tests.simulation.sensitivity import seeds_to_catch

ROOT = Path(__file__).parents[2]
QUICK_BUG = "what was taken is not recorded"
"""One that few seeds catch; the others are planted with --slow."""


def simulate(*arguments: str | int | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation", *map(str, arguments)],
        cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("first", [0, 50, 100])
def test_nothing_is_lost_doubled_or_out_of_order(first: int) -> None:
    done = simulate("--from", first, "--seeds", 50)
    assert done.returncode == 0, done.stdout
    assert "lost 0, duplicated 0, misordered 0" in done.stdout


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [simulate("--from", 7, "--seeds", 2, "--trace").stdout.partition("simulated hours")[0] for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0].count("trace of seed") == 2
    assert "worker killed" in runs[0]


def test_a_long_run_is_made_in_parts_and_adds_to_its_ledger(tmp_path: Path) -> None:
    for _ in range(2):
        assert simulate("--seeds", 2, "--faults", 3, "--ledger", tmp_path / "ledger").returncode == 0
    (entry,) = ledger.read(tmp_path / "ledger")
    assert (entry.first, entry.end, entry.failed) == (0, 4, [])
    assert sum(entry.engines.values()) == 4
    assert entry.counts["rows"] == sum(entry.counts[kind] for kind in ("joined", "late", "rejected", "unmatched"))
    assert simulate("--table", tmp_path / "ledger").stdout.count("\n") == 3


def test_the_documentation_shows_the_ledger() -> None:
    entries = ledger.read(Path(__file__).with_name("ledger.jsonl"))
    assert ledger.table(entries) in (ROOT / "docs/reliability.md").read_text()


def test_whoever_doubts_the_ledger_can_check_out_what_was_run() -> None:
    def git(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)

    if not (ROOT / ".git").exists() or git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("the history is not here")
    for entry in ledger.read(Path(__file__).with_name("ledger.jsonl")):
        found = git("merge-base", "--is-ancestor", entry.commit, "HEAD")
        assert found.returncode == 0, f"{entry.commit} is not in the history of this version"


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
