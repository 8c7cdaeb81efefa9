"""The code in docs/queries.md runs as it stands there, from top to bottom, and prints what is shown below it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

GUIDE = (Path(__file__).parent.parent / "docs" / "queries.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", GUIDE, re.DOTALL)


def test_the_guide_runs_and_prints_what_it_shows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # a module of its own, so that the functions that the guide defines can be found by their names
    guide = ModuleType("queries_guide")
    monkeypatch.setitem(sys.modules, guide.__name__, guide)
    assert len(BLOCKS) > 10
    for code, shown in BLOCKS:
        exec(compile(code, "docs/queries.md", "exec"), guide.__dict__)  # noqa: S102
        assert capsys.readouterr().out == shown
