"""The ledger of a long run: which seeds have been run with which version, and what they met.

A file of JSON lines, one for each version. A run goes on behind the last seed of its version, and adds to its line now
and then, so it can be interrupted at any time.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.simulation.matrix import Cell
from tests.simulation.world import Report

ROOT = Path(__file__).parents[2]
SIMULATED = ("topology", "operators", "indexes", "tests")
"""The folders that decide what a seed does."""

COUNTED = ("rows", "joined", "late", "rejected", "unmatched", "results", "lives", "later_starts", "steps")


@dataclass
class Entry:
    """What seeds of one version have met; those from `first` on, up to but without `end`."""

    commit: str
    first: int = 0
    end: int = 0
    failed: list[int] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    simulated_hours: float = 0.0
    processor_seconds: float = 0.0
    faults: Counter[str] = field(default_factory=Counter)
    engines: Counter[str] = field(default_factory=Counter)
    workers: Counter[str] = field(default_factory=Counter)
    cells: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)

    @property
    def seeds(self) -> int:
        return self.end - self.first

    def add(self, report: Report) -> None:
        """Add one seed that was right."""
        self.counts.update({name: getattr(report, name) for name in COUNTED})
        self.simulated_hours += report.seconds / 3600
        self.faults.update(report.faults)
        self.engines[report.engine] += 1
        self.workers[str(report.workers)] += 1
        for (kind, phase, fault), count in report.cells.items():
            of_phase = self.cells.setdefault(kind, {}).setdefault(phase, {})
            of_phase[fault] = of_phase.get(fault, 0) + count

    def cell_counts(self) -> Counter[Cell]:
        """The cells as the matrix has them."""
        return Counter(
            {
                (kind, phase, fault): count
                for kind, phases in self.cells.items()
                for phase, faults in phases.items()
                for fault, count in faults.items()
            }
        )


def version() -> str:
    """The commit that is checked out, with a plus sign if something that matters was changed since."""
    run = ["git", "-C", str(ROOT)]
    found = subprocess.run([*run, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=False)
    if found.returncode:
        return "unknown"
    changed = subprocess.run(
        [*run, "status", "--porcelain", "--", *SIMULATED], capture_output=True, text=True, check=True
    )
    return found.stdout.strip() + ("+" if changed.stdout.strip() else "")


def read(path: Path) -> list[Entry]:
    """The entries of a ledger; none if there is no such file."""
    if not path.exists():
        return []
    entries = []
    for line in path.read_text().splitlines():
        entry = Entry(**json.loads(line))
        for name in ("counts", "faults", "engines", "workers"):
            setattr(entry, name, Counter(getattr(entry, name)))
        entries.append(entry)
    return entries


def write(path: Path, entries: list[Entry]) -> None:
    """Replace a ledger; a crash leaves the old one or the new one."""
    draft = path.with_suffix(".draft")
    draft.write_text("".join(json.dumps(vars(entry), sort_keys=True) + "\n" for entry in entries))
    draft.replace(path)


def table(entries: list[Entry]) -> str:
    """The ledger as a table for the documentation."""
    lines = [
        "| commit | seeds | faults | rows | results | lives | simulated hours | wrong |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for entry in entries:
        counts = entry.counts
        lines.append(
            f"| `{entry.commit}` | {entry.seeds:,} | {sum(entry.faults.values()):,} | {counts['rows']:,} "
            f"| {counts['results']:,} | {counts['lives']:,} | {entry.simulated_hours:,.0f} | {len(entry.failed)} |"
        )
    return "\n".join(lines)
