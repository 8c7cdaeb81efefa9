"""Plants each bug in a copy of the project, and counts the seeds that the simulation needs to catch it.

`python -m tests.simulation.sensitivity [--most 200] [--only TEXT] [--known FILE]` prints a line per bug, and fails if
one is missed. With `--known FILE` what is found is kept there, and a bug that is in the file is not planted again.
"""

from __future__ import annotations

import argparse
import json
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


def copied(directory: Path) -> None:
    """Copy the source and its tests."""
    for folder in COPIED:
        shutil.copytree(ROOT / folder, directory / folder, ignore=shutil.ignore_patterns("__pycache__"))


def seeds_to_catch(bug: Bug, most: int) -> int | None:
    """How many seeds it takes; None if `most` are not enough."""
    with tempfile.TemporaryDirectory() as directory:
        copied(Path(directory))
        bug.plant(Path(directory))
        return seeds_that_fail(Path(directory), most)


def seeds_that_fail(root: Path, most: int) -> int | None:
    """The number of seeds up to the first that fails in the project below a directory; None if none of `most` does."""
    command = [sys.executable, "-m", "tests.simulation", "--seeds", str(most), "--stop"]
    done = subprocess.run(
        command, cwd=root, env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return None
    failed = [line for line in done.stdout.splitlines() if line.startswith("seed ")]
    return int(failed[0].split()[1]) + 1 if failed else 1  # it does not even start


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.sensitivity", description=__doc__)
    parser.add_argument("--most", type=int, default=200, help="seeds to try for each bug")
    parser.add_argument("--only", default="", help="only bugs whose name contains this")
    parser.add_argument("--known", type=Path, help="keep what is found in this file, and go on from it")
    given = parser.parse_args()
    found: dict[str, int | None] = {}
    if given.known is not None and given.known.exists():
        found = json.loads(given.known.read_text())
    chosen = [bug for bug in BUGS if given.only in bug.name]
    for bug in chosen:
        if found.get(bug.name) is None:
            found[bug.name] = seeds_to_catch(bug, given.most)
            if given.known is not None:
                given.known.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{found[bug.name] or 'NOT CAUGHT':>10}  {bug.name}", flush=True)
    caught = [seeds for bug in chosen if (seeds := found[bug.name]) is not None]
    print(f"{len(caught)} of {len(chosen)} caught, median {statistics.median(caught) if caught else '-'} seeds")
    return 0 if len(caught) == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
