"""Small tables of text, for people and for pipes."""

from __future__ import annotations

from collections.abc import Sequence

import click

GAP = "  "


def print_columns(names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Print rows below their names, without columns that are empty; those in `right` stand to the right."""
    filled = [number for number in range(len(names)) if any(row[number] for row in rows)]
    names, rows = [names[number] for number in filled], [[row[number] for number in filled] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        shown = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(names, cells, widths, strict=True)
        ]
        return GAP.join(shown).rstrip()

    click.echo(click.style(line(names), bold=True))
    for row in rows:
        click.echo(line(row))


def bytes_text(size: float) -> str:
    """A number of bytes, short."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
