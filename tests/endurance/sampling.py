"""What a process uses, again and again: memory, descriptors, threads, and the bytes of its state and its log."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median


@dataclass(frozen=True)
class Sample:
    """One look at a process."""

    memory: int
    descriptors: int
    threads: int
    state: int
    log: int


SLACK = Sample(memory=96 * 1024**2, descriptors=16, threads=8, state=160 * 1024**2, log=64 * 1024)
"""What each may vary by although nothing grows: allocators keep memory, a segment is 32 MiB, a warning is a line."""


def sample(process: int, state: Path, log: Path) -> Sample | None:
    """Look at a process; None if it has ended."""
    try:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
        return Sample(
            int(status["VmRSS"].split()[0]) * 1024,
            len(os.listdir(f"/proc/{process}/fd")),
            int(status["Threads"]),
            sum(_size(path) for path in state.rglob("*")),
            _size(log),
        )
    except (OSError, KeyError):
        return None


def growth(samples: Sequence[Sample]) -> list[str]:
    """What has grown: the median of the last quarter is above that of the second by more than the slack."""
    quarter = len(samples) // 4
    assert quarter, "too few samples to judge"
    found = []
    for each in fields(Sample):
        early, late = (
            median(getattr(one, each.name) for one in part)
            for part in (samples[quarter : 2 * quarter], samples[-quarter:])
        )
        if late > early + getattr(SLACK, each.name):
            found.append(f"{each.name} grew from {early:,.0f} to {late:,.0f}")
    return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # it has just been removed
        return 0
