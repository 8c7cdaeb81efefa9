"""The example that is killed in the middle counts every word once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_a_program_that_is_killed_in_the_middle_counts_every_word_once() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "examples.killed_word_count"],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert finished.stdout.splitlines() == [
        "a program was killed by signal 9",
        "3,000 of 6,000 lines were in its state",
        "138,000 words, 138,000 without a kill; same: True",
    ], finished.stderr
