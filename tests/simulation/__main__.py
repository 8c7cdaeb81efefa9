"""Runs seeds of the simulation: `python -m tests.simulation --seeds 300`; only one with `--seed 7`.

Prints what was run, what was hit and what went wrong. A failing seed prints the command that replays it. With
`--ledger FILE` a long run can be interrupted and goes on where it was; `--table FILE` prints a ledger as a table.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
import traceback
import warnings
from pathlib import Path

KEPT_EACH = 50
"""After so many seeds the ledger is written."""

SHOWN = 40
"""Empty cells of the matrix that are listed."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many seeds")
    parser.add_argument("--from", type=int, dest="first", help="the first one; default: 0, or behind the ledger's last")
    parser.add_argument("--seed", type=int, help="run only this one")
    parser.add_argument("--faults", type=int, default=20, help="faults for each seed, at least")
    parser.add_argument("--steps", type=int, default=400_000, help="steps after which a seed counts as stuck")
    parser.add_argument("--stop", action="store_true", help="stop at the first seed that fails")
    parser.add_argument("--seconds", type=float, help="stop after so many seconds")
    parser.add_argument("--ledger", type=Path, help="go on behind the seeds in this file, and add these")
    parser.add_argument("--table", type=Path, help="only print the ledger in this file as a table")
    parser.add_argument("--trace", action="store_true", help="also print all that each seed did, as one number")
    given = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # a seed must mean the same in every process
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]], environment)
    from tests.simulation import ledger

    if given.table is not None:
        print(ledger.table(ledger.read(given.table)))
        return 0
    return run(given)


def run(given: argparse.Namespace) -> int:
    from tests.simulation import ledger, matrix
    from tests.simulation.faults import FAULTS, finish
    from tests.simulation.world import World

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    began, cpu = time.monotonic(), time.process_time()
    others = [] if given.ledger is None else ledger.read(given.ledger)
    entry = ledger.Entry(ledger.version())
    if others and others[-1].commit == entry.commit and given.first is None:
        entry = others.pop()
    elif given.seed is not None or given.first is not None:
        entry.first = entry.end = given.first if given.seed is None else given.seed
    spent = entry.processor_seconds
    for seed in range(entry.end, entry.end + (given.seeds if given.seed is None else 1)):
        world = World(seed)
        entry.end = seed + 1
        try:
            entry.add(finish(world, given.faults, given.steps))
        except Exception:
            entry.failed.append(seed)
            print(f"seed {seed} failed: {world.describe()}")
            traceback.print_exc(file=sys.stdout)
            print(f"replay: {Path(sys.executable).name} -m tests.simulation --seed {seed} --faults {given.faults}")
            if given.stop:
                break
        if given.trace:
            print(f"trace of seed {seed}: {world.trace:08x}")
        entry.processor_seconds = spent + time.process_time() - cpu
        if given.ledger is not None and (seed + 1) % KEPT_EACH == 0:
            ledger.write(given.ledger, [*others, entry])
        if given.seconds is not None and time.monotonic() - began > given.seconds:
            break
    if given.ledger is not None:
        ledger.write(given.ledger, [*others, entry])
    faults = tuple(FAULTS)
    print("faults that came while something was at work:")
    for name in faults:
        print(f"  {name:<24}{entry.faults[name]:>10,}")
    print("kinds of tasks at work x phases: faults (kinds of faults that came)")
    print(matrix.drawn(entry.cell_counts(), faults))
    empty = matrix.empty(entry.cell_counts(), faults)
    print(f"{len(empty)} cells of kind x phase x fault are empty" + (", among them:" if len(empty) > SHOWN else ":"))
    for cell in empty[:SHOWN]:
        print(f"  {' x '.join(cell)}")
    counts = entry.counts
    print(
        f"{counts['rows']:,} rows in = {counts['joined']:,} joined + {counts['late']:,} late + "
        f"{counts['rejected']:,} rejected + {counts['unmatched']:,} unmatched; {counts['results']:,} results; "
        f"{counts['lives']:,} lives, {counts['later_starts']:,} from the middle of the streams; "
        f"{entry.simulated_hours:,.1f} simulated hours, {entry.processor_seconds / max(1, entry.seeds):.2f} s per seed"
    )
    right = "lost 0, duplicated 0, misordered 0" if not entry.failed else f"WRONG: seeds {entry.failed}"
    print(f"{entry.seeds:,} seeds, {sum(entry.faults.values()):,} faults, {counts['rows']:,} rows: {right}")
    return 1 if entry.failed else 0


if __name__ == "__main__":
    sys.exit(main())
