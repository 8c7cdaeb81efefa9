"""The examples of a few lines: under 30 lines each, and right on random rows under any schedule."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

import interlace as il
from interlace.testing import run

ROOT = Path(__file__).parent.parent.parent
SHORT = ("words", "sessions", "top_k")


@pytest.mark.parametrize("name", SHORT)
def test_it_is_short_and_prints_something(name: str) -> None:
    assert len((ROOT / "examples" / f"{name}.py").read_text().splitlines()) < 30
    shown = subprocess.run(
        [sys.executable, "-m", f"examples.{name}"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert shown.stdout


def topology(name: str) -> il.Topology:
    found = import_module(f"examples.{name}").topology
    assert isinstance(found, il.Topology)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_words_are_counted(seed: int) -> None:
    chance = Random(seed)
    lines = [" ".join(chance.choices(["to", "be", "or", "not"], k=5)) for _ in range(20)]
    sources = {"a": [{"line": lines[:7]}, {"line": lines[7:12]}], "b": [{"line": lines[12:]}]}
    found = run(topology("words"), {"lines": sources}, seed=seed)["results"].to_pylist()
    last = {row["word"]: row["count"] for row in sorted(found, key=lambda row: row["count"])}
    assert last == Counter(" ".join(lines).split())


@pytest.mark.parametrize("seed", range(3))
def test_sessions_are_told_apart(seed: int) -> None:
    chance = Random(seed)
    clicks = sorted((chance.randrange(50_000), chance.choice("ab"), str(number)) for number in range(80))
    expected = []
    for user in "ab":
        times = [time for time, who, _ in clicks if who == user]
        cuts = [0, *(at for at in range(1, len(times)) if times[at] - times[at - 1] >= 1800), len(times)]
        expected += [(user, times[a], times[b - 1] + 1800, b - a) for a, b in pairwise(cuts)]
    batches = [
        {
            "user": [user for _, user, _ in part],
            "ts": [time for time, _, _ in part],
            "page": [page for *_, page in part],
        }
        for part in (clicks[at : at + 9] for at in range(0, len(clicks), 9))
    ]
    emitted = run(topology("sessions"), {"clicks": batches}, seed=seed)
    found = [(row["user"], row["began"], row["over"], row["clicks"]) for row in emitted["results"].to_pylist()]
    assert sorted(found) == sorted(expected)
    assert emitted["late"].num_rows == 0


@pytest.mark.parametrize("seed", range(3))
def test_the_top_pages_of_each_minute(seed: int) -> None:
    chance = Random(seed)
    clicks = sorted((chance.randrange(300), chance.choice("abcde")) for _ in range(200))
    expected = []
    for end in range(60, 301, 60):
        views = Counter(page for time, page in clicks if end - 60 <= time < end)
        top = sorted(views.items(), key=lambda item: (-item[1], item[0]))[:3]
        expected += [{"minute": end, "page": page, "views": count} for page, count in top]
    batches = [
        {"ts": [time for time, _ in part], "page": [page for _, page in part]}
        for part in (clicks[at : at + 30] for at in range(0, len(clicks), 30))
    ]
    assert run(topology("top_k"), {"clicks": batches}, seed=seed)["results"].to_pylist() == expected
