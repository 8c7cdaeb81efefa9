"""Plants each bug in a copy of the project, and counts the seeds that the simulation needs to catch it.

`python -m tests.simulation.sensitivity [--most 200] [--only TEXT]` prints a line per bug, and fails if one is missed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.simulation.planted_bugs import BUGS, Bug

ROOT = Path(__file__).parents[2]
COPIED = ("topology", "operators", "indexes", "tests", "interlace")


def seeds_to_catch(bug: Bug, most: int) -> int | None:
    """How many seeds it takes; None if `most` are not enough."""
    with tempfile.TemporaryDirectory() as directory:
        for folder in COPIED:
            shutil.copytree(ROOT / folder, Path(directory) / folder, ignore=shutil.ignore_patterns("__pycache__"))
        bug.plant(Path(directory))
        command = [sys.executable, "-m", "tests.simulation", "--seeds", str(most), "--stop", "--steps", "20000"]
        done = subprocess.run(
            command, cwd=directory, env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    if done.returncode == 0:
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
    if not failed:
        raise AssertionError(f"{bug.name}: the simulation did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return int(failed[0].split()[1]) + 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.sensitivity", description=__doc__)
    parser.add_argument("--most", type=int, default=200, help="seeds to try for each bug")
    parser.add_argument("--only", default="", help="only bugs whose name contains this")
    given = parser.parse_args()
    found: dict[str, int | None] = {}
    for bug in BUGS:
        if given.only in bug.name:
            found[bug.name] = seeds_to_catch(bug, given.most)
            print(f"{found[bug.name] or 'NOT CAUGHT':>10}  {bug.name}", flush=True)
    caught = [seeds for seeds in found.values() if seeds is not None]
    print(f"{len(caught)} of {len(found)} caught, median {statistics.median(caught) if caught else '-'} seeds")
    return 0 if len(caught) == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
