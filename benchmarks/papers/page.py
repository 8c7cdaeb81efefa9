"""The figures' part of docs/papers.md: from the registry and the stored runs, with a plot for each figure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from benchmarks.chart import line_chart
from benchmarks.papers.figure import Figure, Paper, Point, Points
from benchmarks.papers.stored import Stored, file_of, load

PAGE = Path(__file__).parents[2] / "docs" / "papers.md"
BEGIN = "## Figures\n"
"""Everything from this heading on is generated."""

HOW = """
`python -m benchmarks papers` measures the figures of the papers that this project can reproduce, stores them as JSON
under `benchmarks/papers/results/`, and writes this part of the page from them. `--paper spo-join --figure 10` selects,
`--list` lists, `--quick` shows in a short time that a figure works and stores nothing. Each figure is measured twice; a
table gives the mean of both runs. "Paper" is what the text of a paper prints: nothing is read off its plots. Where its
hardware has 16 to 48 cores and ours has two, compare ratios, not rates. Where recorded data is not at hand, generated
rows with the same columns stand in, and the run prints so.
"""

PALER = "paper: "
"""Begins the name of a series that the paper prints."""


def write_page(papers: Sequence[Paper], folder: Path, page: Path) -> None:
    """Draw all plots beside the page, and replace the generated part of its text."""
    for paper in papers:
        for figure in paper.figures:
            stored = load(file_of(folder, paper, figure))
            if stored is not None:
                draw(page.parent / plot_of(paper, figure), figure, stored.points)
    before, heading, _ = page.read_text().partition(BEGIN)
    page.write_text(before + (heading or BEGIN) + text(papers, folder))


def plot_of(paper: Paper, figure: Figure) -> str:
    return f"figures/papers/{paper.key}-{figure.number}.svg"


def draw(path: Path, figure: Figure, points: Points) -> None:
    """Draw ours as lines, and the points that the paper prints as series of their own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    series: dict[str, list[tuple[float, float]]] = {}
    for point in [*points, *(Point(PALER + each.series, each.x, each.y) for each in figure.printed)]:
        series.setdefault(point.series, []).append((point.x, point.y))
    line_chart(path, figure.title, figure.x, figure.y, {name: sorted(each) for name, each in series.items()})


def text(papers: Sequence[Paper], folder: Path) -> str:
    """The generated part, after its heading."""
    lines = [HOW]
    for paper in papers:
        lines += [f"### {paper.title}", "", f"The paper's hardware: {paper.hardware}.", ""]
        for figure in paper.figures:
            lines += _section(paper, figure, load(file_of(folder, paper, figure)))
        if paper.missing:
            lines += ["| not measured | because |", "|---|---|"]
            lines += [f"| {each.number} | {each.reason} |" for each in paper.missing]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _section(paper: Paper, figure: Figure, stored: Stored | None) -> list[str]:
    lines = [f"#### Figure {figure.number}: {figure.title}", ""]
    lines += [_filled(f"Varies {figure.varies}. {figure.workload}"), ""]
    if stored is None:
        return [*lines, "No run yet.", ""]
    lines += [*table(figure, stored.points), ""]
    if figure.claims:
        lines += ["| the paper's text | paper | ours | |", "|---|---|---|---|"]
        for claim in figure.claims:
            ours = claim.ours(stored.points)
            unit = f" {claim.unit}" if claim.unit else ""
            verdict = claim.verdict(stored.points)
            lines.append(f"| {claim.text} | {claim.printed:g}{unit} | {ours:.3g}{unit} | {verdict} |")
        lines.append("")
    lines += [f"![{figure.title}]({plot_of(paper, figure)})", ""]
    measured = f"Measured in {stored.seconds:.0f} s on {stored.machine}"
    if len(stored.runs) > 1:
        measured += f"; the runs of a point differ by at most {stored.spread:.0%}"
    return [*lines, _filled(f"{figure.conclude} {figure.differs}"), "", _filled(f"{measured}."), ""]


def _filled(words: str) -> str:
    return textwrap.fill(words, 120, break_long_words=False, break_on_hyphens=False)


def table(figure: Figure, points: Points) -> list[str]:
    """The points as a table of Markdown: a row per place, a column per series; y in the unit of its axis."""
    names = list(dict.fromkeys(point.series for point in points))
    places = sorted({point.x for point in points})
    values = {(point.series, point.x): point.y for point in points}
    rows = [f"| {figure.x.label or ' '} | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for place in places:
        label = figure.x.names[int(place)] if figure.x.names else shown(place)
        cells = [shown(values[name, place]) if (name, place) in values else "" for name in names]
        rows.append(f"| {label} | " + " | ".join(cells) + " |")
    return [*rows, "", f"Values: {figure.y.label}."]


def shown(value: float) -> str:
    """A number in a form that a table can hold: three digits, or whole."""
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"
