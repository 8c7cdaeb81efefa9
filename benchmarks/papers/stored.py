"""Runs of figures as JSON files, one per figure.

{"paper", "figure", "machine", "seconds", "runs": [[[series, x, y], ...], ...]}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from benchmarks.papers.figure import Figure, Paper, Point, Points

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Stored:
    """What is kept of a figure: its points in each run, on which machine, and how long it took."""

    machine: str
    seconds: float
    runs: tuple[tuple[Point, ...], ...]

    @property
    def points(self) -> Points:
        """The mean of the runs at each place."""
        return [
            Point(same[0].series, same[0].x, fmean(each.y for each in same)) for same in zip(*self.runs, strict=True)
        ]

    @property
    def spread(self) -> float:
        """The greatest difference between two runs of a point, over their mean; 0.0 of one run."""
        differences = [
            (max(each.y for each in same) - min(each.y for each in same)) / (abs(fmean(each.y for each in same)) or 1.0)
            for same in zip(*self.runs, strict=True)
        ]
        return max(differences, default=0.0)


def file_of(folder: Path, paper: Paper, figure: Figure) -> Path:
    return folder / f"{paper.key}-{figure.number}.json"


def store(path: Path, paper: Paper, figure: Figure, machine: str, seconds: float, runs: Sequence[Points]) -> None:
    """Write the file in one step, so that a run that is cut off leaves none."""
    places = [[point[:2] for point in run] for run in runs]
    if any(each != places[0] for each in places):
        raise AssertionError(f"figure {figure.number}: the runs have different places")
    rounded = [[[series, x, float(f"{y:.5g}")] for series, x, y in run] for run in runs]
    described = {"paper": paper.key, "figure": figure.number, "machine": machine, "seconds": round(seconds, 1)}
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps({**described, "runs": rounded}) + "\n")
    unfinished.replace(path)


def load(path: Path) -> Stored | None:
    """A figure's stored runs; None if there are none."""
    if not path.exists():
        return None
    read = json.loads(path.read_text())
    runs = tuple(tuple(Point(series, x, y) for series, x, y in run) for run in read["runs"])
    return Stored(read["machine"], read["seconds"], runs)
