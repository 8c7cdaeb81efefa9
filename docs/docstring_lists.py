"""Turns the aligned lists in docstrings into Markdown lists, so that the API reference shows one argument per line.

In such a list each line is `name:  meaning`, or indented text that continues the line before.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

ITEM = re.compile(r"(\w+(?:, \w+)*):\s+(\S.*)")


class DocstringLists(griffe.Extension):
    """Applies to every object that is documented."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = "\n\n".join(_listed(part) for part in obj.docstring.value.split("\n\n"))


def _listed(paragraph: str) -> str:
    """The paragraph, as a list if each of its lines begins an item or continues one."""
    lines = paragraph.split("\n")
    if not ITEM.match(lines[0]) or not all(ITEM.match(line) or line.startswith("    ") for line in lines):
        return paragraph
    return "\n".join(ITEM.sub(r"- **\1**: \2", line) if ITEM.match(line) else "    " + line.strip() for line in lines)
