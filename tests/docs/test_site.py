"""The documentation site builds, and none of its links is broken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.code_blocks import ROOT

SETTINGS = ROOT / "mkdocs.yml"


def build(settings: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build as `make docs` does. With --quiet, mkdocs would not count warnings as errors."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", str(settings), "--site-dir", str(site)],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    finished = build(SETTINGS, tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert 'id="operators.StreamJoin"' in (tmp_path / "reference" / "operators.html").read_text()
    assert "operators.html#operators.StreamJoin" in (tmp_path / "reference" / "interlace.html").read_text()
    assert "fonts.googleapis" not in (tmp_path / "index.html").read_text()


def test_broken_links_are_errors(tmp_path: Path) -> None:
    broken = ["missing.md", "index.md#missing", "../README.md", "/index.md"]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A page\n\n" + "\n".join(f"[link]({link})" for link in broken))
    settings = tmp_path / "mkdocs.yml"
    settings.write_text(f"INHERIT: {SETTINGS}\nhooks: []\nplugins: []\nextra_css: []\nnav: [index.md]\n")
    finished = build(settings, tmp_path / "site")
    assert finished.returncode != 0
    assert [link for link in broken if f"'{link}'" not in finished.stderr] == []
