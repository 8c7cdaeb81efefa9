"""The pictures of the page that docs show can be made, and docs show all of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.interlace.web.browser import chromium

pytest.importorskip("playwright")
from tests.interlace.web.page_pictures import FOLDER, PICTURES, main

DOCS = Path(__file__).parents[3] / "docs"


def test_docs_show_every_picture() -> None:
    shown = re.findall(r"!\[[^]]+\]\(figures/page-([a-z-]+)\.png\)", (DOCS / "operating.md").read_text())
    assert sorted(shown) == sorted(PICTURES)
    assert {path.stem.removeprefix("page-") for path in FOLDER.glob("page-*.png")} == set(PICTURES)


@pytest.mark.slow
@pytest.mark.skipif(chromium() is None, reason="there is no Chromium: run make system-deps")
def test_the_pictures_are_made(tmp_path: Path) -> None:
    main(tmp_path, seconds=6)
    for name in PICTURES:
        assert (tmp_path / f"page-{name}.png").stat().st_size > 20_000, name
