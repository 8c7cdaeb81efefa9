"""The code blocks of the README and of the pages in docs/, and what each prints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class CodeBlock:
    """One fenced block; `shown` is the `text` block that follows it at once, "" without one."""

    page: str
    line: int
    language: str
    code: str
    shown: str

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"


def code_blocks(page: Path) -> list[CodeBlock]:
    text = page.read_text()
    found = list(FENCED.finditer(text))
    blocks = []
    for match, after in zip_longest(found, found[1:]):
        shown = after is not None and after[2] == "text" and text[match.end() : after.start()] == "\n"
        blocks.append(
            CodeBlock(
                page=str(page.relative_to(ROOT)),
                line=text.count("\n", 0, match.start()) + 1,
                language=match[2],
                code=match[3],
                shown=after[3] if shown and after is not None else "",
            )
        )
    return blocks


BLOCKS = [block for page in PAGES for block in code_blocks(page)]
