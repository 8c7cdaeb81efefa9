"""`python -m benchmarks papers`: measure figures that have no stored run yet, then write docs/papers.md from all "
"that have.

A full run measures every figure twice, prints the first run as a table, and stores both. It may be stopped at any
time; the next one goes on with the figures that are missing. `--quick` measures once at small sizes and stores nothing,
unless `--results` names a folder.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from pathlib import Path

from benchmarks.papers.figure import Figure, Paper
from benchmarks.papers.page import PAGE, table, write_page
from benchmarks.papers.registry import PAPERS
from benchmarks.papers.stored import RESULTS, file_of, load, store

RUNS = 2
"""Of a full run: a figure of the docs has been seen twice."""


def main(arguments: list[str], machine: str) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks papers", description=__doc__)
    parser.add_argument("--paper", choices=[paper.key for paper in PAPERS], help="only figures of this paper")
    parser.add_argument("--figure", help="only this figure, as 10 or 10b")
    parser.add_argument("--quick", action="store_true", help="smaller and once: to see that it works")
    parser.add_argument("--again", action="store_true", help="also measure figures that have a stored run")
    parser.add_argument("--list", action="store_true", help="list the figures and which have a stored run")
    parser.add_argument("--page", action="store_true", help=f"measure nothing, write {PAGE.name} from the stored runs")
    parser.add_argument("--results", type=Path, help="where runs are stored (default: benchmarks/papers/results)")
    options = parser.parse_args(arguments)
    chosen = chosen_figures(options.paper, options.figure)
    if not chosen:
        parser.error(f"no figure {options.figure} is measured: --list shows those that are")
    folder = options.results or (None if options.quick else RESULTS)
    if options.list:
        for paper, figure in chosen:
            has = "run" if file_of(folder or RESULTS, paper, figure).exists() else "-"
            print(f"{paper.key:<12}{figure.number:<5}{has:<5}{figure.title}")
        return 0
    os.environ.setdefault("INTERLACE_KERNELS", "compiled")  # figures are those of machine code from the first row on
    began = time.perf_counter()
    for paper, figure in [] if options.page else chosen:
        if folder is None or options.again or not file_of(folder, paper, figure).exists():
            measure(paper, figure, options.quick, folder, machine)
    if not options.quick:
        write_page(PAPERS, folder or RESULTS, PAGE)
        print(f"{PAGE.name} is written")
    print(f"{time.perf_counter() - began:,.0f} s")
    return 0


def chosen_figures(paper: str | None, figure: str | None) -> list[tuple[Paper, Figure]]:
    """The figures of the registry that the options name."""
    return [
        (each, one)
        for each in PAPERS
        if paper in (None, each.key)
        for one in each.figures
        if figure in (None, one.number, re.sub(r"\D+$", "", one.number))
    ]


def measure(paper: Paper, figure: Figure, quick: bool, folder: Path | None, machine: str) -> None:
    """Measure one figure, print its table, and store its runs."""
    print(f"\n{paper.key}, figure {figure.number}: {figure.title}", flush=True)
    start = time.perf_counter()
    runs = [list(figure.measure(quick)) for _ in range(1 if quick else RUNS)]
    seconds = time.perf_counter() - start
    print("\n".join(table(figure, runs[0])))
    for claim in figure.claims:
        if not quick:
            print(f"  {claim.text}: paper {claim.printed:g}, ours {claim.ours(runs[0]):.3g}")
    print(f"  {seconds:.0f} s", flush=True)
    if folder is not None:
        store(file_of(folder, paper, figure), paper, figure, machine, seconds, runs)
        assert load(file_of(folder, paper, figure)) is not None
