"""The list of built-in functions in docs/queries.md is the table in the code."""

from __future__ import annotations

from pathlib import Path

from operators.functions.builtins import BUILTINS

PAGE = Path(__file__).parents[2] / "docs" / "queries.md"


def row(name: str) -> str:
    """One line of the page."""
    builtin = BUILTINS[name]
    marks = [f"{{{place}}}" for place in range(3)]
    written = builtin.written or f"{name}(..)"
    for mark, letter in zip(marks, "xyz", strict=True):
        written = written.replace(mark, letter)
    if name == "case":
        written = "CASE WHEN c THEN x ELSE y END"
    others = ", ".join(f"`{alias}`" for alias in builtin.aliases)
    line = f"| `{written}` | {builtin.summary} | {others} |"
    return line.replace("x || y", "x \\|\\| y").replace("`x | y`", "`x \\| y`")


def test_the_page_lists_every_function_as_the_table_has_it() -> None:
    listed = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    expected = [row(name) for name in BUILTINS]
    assert [line for line in expected if line not in listed] == []
