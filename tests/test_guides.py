"""The code in the guides runs as it stands there, from top to bottom, and prints what is shown below it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parent.parent / "docs"
GUIDES = {"queries.md": 12, "event-time.md": 2}
"""The guides, and how many pieces of code they have at least."""


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_runs_and_prints_what_it_shows(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", (DOCS / name).read_text(), re.DOTALL)
    assert len(blocks) >= GUIDES[name]
    # a module of its own, so that the functions that the guide defines can be found by their names
    guide = ModuleType("guide")
    monkeypatch.setitem(sys.modules, guide.__name__, guide)
    for code, shown in blocks:
        exec(compile(code, f"docs/{name}", "exec"), guide.__dict__)  # noqa: S102
        assert capsys.readouterr().out == shown
