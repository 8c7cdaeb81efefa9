"""The files, names of code and links that the documentation mentions exist, as seen in the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.code_blocks import PAGES, ROOT

FILE = re.compile(r"`((?:topology|operators|indexes|spark_bridge|interlace|examples|benchmarks|tests|docs)/[\w/.*-]+)`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
DEFINED = re.compile(r"\| `([\w/]+\.py)` \| `(\w+)` \|$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = FILE.findall(page.read_text())
    assert [name for name in named if not list(ROOT.glob(name.rstrip("/")))] == []


def test_mechanisms_of_the_papers_are_where_the_table_says() -> None:
    rows = DEFINED.findall((ROOT / "docs/papers.md").read_text())
    assert len(rows) >= 40
    missing = [
        (file, name)
        for file, name in rows
        if not re.search(rf"^((class|def) {name}\b|{name} = )", (ROOT / file).read_text(), re.MULTILINE)
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_of_the_repository(page: Path) -> None:
    links = LINK.findall(page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []
