"""The documentation site builds, and none of its links is broken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.docs.code_blocks import ROOT


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    finished = build(ROOT, tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert "StreamJoin" in (tmp_path / "reference" / "interlace.html").read_text()
    assert "fonts.googleapis" not in (tmp_path / "index.html").read_text()
