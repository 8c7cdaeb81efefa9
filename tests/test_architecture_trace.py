"""docs/architecture.md lists every file that a row passes, in order: a traced run agrees with it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.row_path import trace_in_a_new_process

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
ROW = re.compile(r"^\| (?:`([\w-]+)`)? *\| `([\w/]+\.py)` \|", re.MULTILINE)


def listed() -> list[tuple[str, str]]:
    """(stage, file) of each row of the table; a row without a stage belongs to the stage above it."""
    section = PAGE.read_text().split("## The path of a row")[1].split("\n## ")[0]
    rows: list[tuple[str, str]] = []
    for stage, file in ROW.findall(section):
        rows.append((stage or rows[-1][0], file))
    return rows


def test_the_page_lists_the_files_that_a_traced_batch_passes() -> None:
    assert listed() == trace_in_a_new_process()
