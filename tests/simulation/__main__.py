"""Runs seeds of the simulation: `python -m tests.simulation --seeds 300`; only one with `--seed 7`.

Prints what was run and what went wrong. A failing seed prints the command that replays it. With `--ledger FILE` the
totals are added to a file, so that a long run can be made in parts.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    parser.add_argument("--seed", type=int, help="run only this one")
    parser.add_argument("--faults", type=int, default=20, help="faults for each seed")
    parser.add_argument("--steps", type=int, default=100_000, help="steps after which a seed counts as stuck")
    parser.add_argument("--stop", action="store_true", help="stop at the first seed that fails")
    parser.add_argument("--seconds", type=float, help="stop after so many seconds")
    parser.add_argument("--ledger", type=Path, help="go on after the seeds in this file, and add these")
    given = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # a seed must mean the same in every process
        os.execve(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]], _repeatable())
    first = given.first if given.seed is None else given.seed
    if given.ledger is not None and given.ledger.exists():
        first = max(first, json.loads(given.ledger.read_text().splitlines()[-1])["next"])
    return run(first, first + (given.seeds if given.seed is None else 1), given)


def _repeatable() -> dict[str, str]:
    return {**os.environ, "PYTHONHASHSEED": "0"}


def run(first: int, end: int, given: argparse.Namespace) -> int:
    from tests.simulation.world import Report, World

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    began = time.monotonic()
    faults: Counter[str] = Counter()
    engines: Counter[str] = Counter()
    reports: list[Report] = []
    failed: list[int] = []
    seed = first
    for seed in range(first, end):
        world = World(seed)
        try:
            report = world.run(given.faults, given.steps)
        except Exception:
            failed.append(seed)
            print(f"seed {seed} failed: {world.describe()}")
            traceback.print_exc(file=sys.stdout)
            print(f"replay: {Path(sys.executable).name} -m tests.simulation --seed {seed} --faults {given.faults}")
            if given.stop:
                break
            continue
        reports.append(report)
        faults.update(report.faults)
        engines[report.engine] += 1
        if given.seconds is not None and time.monotonic() - began > given.seconds:
            break
    totals = {
        "next": seed + 1,
        "seeds": len(reports) + len(failed),
        "failed": failed,
        "rows": sum(report.rows for report in reports),
        "results": sum(report.results for report in reports),
        "late": sum(report.late for report in reports),
        "starts in the middle": sum(report.later_starts for report in reports),
        "lives": sum(report.lives for report in reports),
        "steps": sum(report.steps for report in reports),
        "faults": dict(sorted(faults.items())),
        "engines": dict(sorted(engines.items())),
        "seconds": round(time.monotonic() - began, 1),
    }
    if given.ledger is not None:
        with given.ledger.open("a") as ledger:
            ledger.write(json.dumps(totals) + "\n")
    print(json.dumps(totals, indent=2))
    right = "lost 0, duplicated 0, misordered 0" if not failed else f"{len(failed)} seeds failed: {failed}"
    print(f"{totals['seeds']} seeds, {sum(faults.values())} faults, {totals['rows']} rows: {right}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
