"""The code in the README runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_front_door_runs_and_gives_what_it_says() -> None:
    scope: dict[str, object] = {}
    exec(BLOCKS[0], scope)  # noqa: S102
    result = scope["join"].collect({"R": scope["r"], "S": scope["s"]})  # type: ignore[attr-defined]
    assert result.to_pydict() == {"R.id": [1], "S.id": [7]}


def test_the_query_text_is_read() -> None:
    scope: dict[str, object] = {}
    exec(f"from operators import StreamJoin\njoin = {BLOCKS[1]}", scope)  # noqa: S102
    assert "power" in str(scope["join"].predicate)  # type: ignore[attr-defined]


def test_the_programs_that_the_readme_names_exist() -> None:
    root = Path(__file__).parent.parent
    for module in re.findall(r"python -m (examples\.\w+)", README):
        assert (root / (module.replace(".", "/") + ".py")).exists()
