"""Results on a terminal: the first rows as a table, and how many more there are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa

NUMERIC = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_duration)
CELLS = (40, 28, 20)
"""The longest text of a cell: the first of these with which all columns fit, or the last."""
GAP = 2


class TableView:
    """Prints rows below a header as they come, in columns whose widths the first rows decide.

    width: of the terminal; columns that do not fit are left out from the middle.
    """

    def __init__(self, console: Any, schema: pa.Schema) -> None:
        self._console = console
        self._schema = schema
        self._widths: list[int] = []
        self._most = CELLS[0]
        self.hidden: list[str] = []
        self._shown: list[int] = []

    def print(self, batch: pa.RecordBatch) -> None:
        """Print rows, the header first if there is none yet."""
        cells = [[shown(value) for value in column.to_pylist()] for column in batch.columns]
        if not self._shown:
            self._measure(cells)
            self._print_line([_cut(name, CELLS[0]) for name in self._schema.names], "bold")
            self._console.print("  ".join("─" * width for width in self._widths), style="dim", highlight=False)
        for row in range(batch.num_rows):
            self._print_line([_cut(column[row], self._most) for column in cells], None)

    def _measure(self, cells: Sequence[Sequence[str]]) -> None:
        names = self._schema.names
        for most in CELLS:
            self._most = most
            widths = [
                max(len(_cut(name, CELLS[0])), min(most, max(len(text) for text in ("null", *column))))
                for name, column in zip(names, cells, strict=True)
            ]
            self._shown = _fitting(widths, self._console.width)
            if -1 not in self._shown:
                break
        self._widths = [1 if number < 0 else widths[number] for number in self._shown]
        self.hidden = [name for number, name in enumerate(names) if number not in self._shown]

    def _print_line(self, cells: Sequence[str], style: str | None) -> None:
        from rich.text import Text

        line = Text(style=style or "", no_wrap=True)
        for place, (number, width) in enumerate(zip(self._shown, self._widths, strict=True)):
            text = "…" if number < 0 else cells[number]
            right = number >= 0 and any(test(self._schema.types[number]) for test in NUMERIC)
            gap = " " * GAP if place else ""
            line.append(gap + (text.rjust(width) if right else text.ljust(width)), "dim" if text == "null" else "")
        line.rstrip()
        self._console.print(line, highlight=False, soft_wrap=True)


def shown(value: Any) -> str:
    """A value as people read it: without zeros that say nothing."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.10g}"
        case datetime():
            return value.isoformat(sep=" ").removesuffix(".000000")
        case date() | timedelta():
            return str(value)
    return " ".join(str(value).split())


def _fitting(widths: Sequence[int], room: int) -> list[int]:
    """The columns that fit, -1 where some are left out: those at both ends are kept, the first before the last."""
    everything = list(range(len(widths)))
    if sum(widths) + GAP * (len(widths) - 1) <= room:
        return everything
    left, right, used = [0], list[int](), widths[0] + GAP + 1
    for turn in range(1, len(widths)):
        from_left = turn % 2 == 0
        number = len(left) if from_left else len(widths) - 1 - len(right)
        used += GAP + widths[number]
        if used > room:
            break
        (left if from_left else right).append(number)
    return [*left, -1, *reversed(right)]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
