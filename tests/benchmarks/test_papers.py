"""The registry of the papers' figures, its runs on disk, and the page that is generated from both."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.chart import Axis
from benchmarks.data import datacentre_readings
from benchmarks.papers import command, joins, queries
from benchmarks.papers.figure import Claim, Figure, Paper, Point, at, best_place, growth, times
from benchmarks.papers.page import BEGIN, PAGE, plot_of, table, text, write_page
from benchmarks.papers.registry import PAPERS
from benchmarks.papers.stored import RESULTS, file_of, load
from operators import SPOJoin, StreamJoin

NUMBERS = {
    "spo-join": range(7, 24),
    "pim-tree": range(8, 14),
    "pan-join": range(10, 16),
    "split-join": range(12, 20),
    "scale-join": range(5, 9),
}
"""The figures of each paper's evaluation."""

MEASURED = [Point("upper", 1, 4.0), Point("upper", 2, 9.0), Point("lower", 1, 2.0), Point("lower", 2, 3.0)]


def figure(number: str, runs: list[str]) -> Figure:
    """A figure that notes in `runs` when it is measured."""

    def measure(quick: bool) -> list[Point]:
        runs.append(number)
        return [point._replace(y=point.y + len(runs)) for point in MEASURED]

    claims = (Claim("upper over lower", 2.0, times("upper", "lower")),)
    axes = (Axis("place"), Axis("rows/s"))
    return Figure(number, "a title", "the place", "Something runs.", *axes, measure, "So.", "Why.", claims)


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Paper, list[str]]:
    runs: list[str] = []
    made = Paper("some", "Some: a paper", "a machine", (figure("1a", runs), figure("1b", runs), figure("10", runs)))
    monkeypatch.setattr(command, "PAPERS", (made,))
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n\n{BEGIN}\nold\n")
    monkeypatch.setattr(command, "PAGE", page)
    return made, runs


def test_every_figure_of_the_papers_is_measured_or_has_a_reason() -> None:
    for paper in PAPERS:
        covered = " ".join([*(each.number for each in paper.figures), *(each.number for each in paper.missing)])
        numbers = {int(number) for number in re.findall(r"\d+", covered)}
        spans = re.findall(r"(\d+)-(\d+)", covered)
        numbers |= {each for first, last in spans for each in range(int(first), int(last) + 1)}
        assert set(NUMBERS[paper.key]) <= numbers, paper.key
        assert len({each.number for each in paper.figures}) == len(paper.figures)
        assert all(each.reason.endswith(".") for each in paper.missing)


def test_the_page_is_what_the_stored_runs_give() -> None:
    assert PAGE.read_text().partition(BEGIN)[2] == text(PAPERS, RESULTS), "run python -m benchmarks papers --page"


def test_stored_runs_have_what_their_claims_compare() -> None:
    for paper in PAPERS:
        for each in paper.figures:
            stored = load(file_of(RESULTS, paper, each))
            if stored is not None:
                assert len(stored.runs) == command.RUNS
                assert all(claim.verdict(stored.points) for claim in each.claims)
                assert (PAGE.parent / plot_of(paper, each)).exists()


def test_a_run_goes_on_where_one_was_stopped(paper: tuple[Paper, list[str]], tmp_path: Path) -> None:
    made, runs = paper
    folder = ["--results", str(tmp_path / "runs")]
    assert command.main(["--figure", "1b", *folder], "here") == 0
    assert runs == ["1b", "1b"], "a figure is measured twice"
    command.main(folder, "here")
    assert runs == ["1b", "1b", "1a", "1a", "10", "10"]
    command.main(["--figure", "1", "--again", *folder], "here")
    assert runs[6:] == ["1a", "1a", "1b", "1b"], "a number without a letter stands for all its parts"
    stored = load(file_of(tmp_path / "runs", made, made.figures[2]))
    assert stored is not None
    assert stored.runs[0][0] == Point("upper", 1, 9.0)
    assert stored.points[0] == Point("upper", 1, 9.5)
    assert stored.spread == pytest.approx(1 / 7.5), "of the least value, 7 and 8"


def test_quick_stores_nothing(paper: tuple[Paper, list[str]], tmp_path: Path) -> None:
    before = (tmp_path / "page.md").read_text()
    command.main(["--quick"], "here")
    assert paper[1] == ["1a", "1b", "10"]
    assert (tmp_path / "page.md").read_text() == before
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]


def test_the_page_has_table_claims_and_plot(paper: tuple[Paper, list[str]], tmp_path: Path) -> None:
    made, _ = paper
    command.main(["--figure", "10", "--results", str(tmp_path / "runs")], "here")
    page = tmp_path / "page.md"
    write_page((made,), tmp_path / "runs", page)
    shown = page.read_text()
    assert shown.startswith(f"# Before\n\n{BEGIN}")
    assert "old" not in shown
    assert "| 1 | 5.5 | 3.5 |" in shown
    assert "| upper over lower | 2 times | 1.95 times | about the same |" in shown
    assert shown.count("No run yet.") == 2
    assert "![a title](figures/papers/some-10.svg)" in shown
    assert "upper" in (tmp_path / "figures/papers/some-10.svg").read_text()


def test_points_that_the_paper_prints_are_drawn(paper: tuple[Paper, list[str]], tmp_path: Path) -> None:
    made, _ = paper
    printed = replace(made.figures[0], printed=(Point("theirs", 1, 6.0),))
    command.measure(made, printed, False, tmp_path / "runs", "here")
    write_page([replace(made, figures=(printed,))], tmp_path / "runs", tmp_path / "page.md")
    assert "paper: theirs" in (tmp_path / "figures/papers/some-1a.svg").read_text()


def test_claims_say_how_ours_compares() -> None:
    assert times("upper", "lower")(MEASURED) == 2.5
    assert times("upper", "lower", 2)(MEASURED) == 3.0
    assert growth("lower")(MEASURED) == 1.5
    assert growth("lower", 2, 1)(MEASURED) == pytest.approx(2 / 3)
    assert (best_place("upper")(MEASURED), at("upper", 1)(MEASURED)) == (2, 4.0)
    verdicts = {
        2.0: "about the same",
        100.0: "same direction",
        0.9: "the other way round",
    }
    for printed, verdict in verdicts.items():
        assert Claim("", printed, times("upper", "lower")).verdict(MEASURED) == verdict
    for printed, verdict in {2.5: "as printed", 3: "ours is lower", 2: "ours is higher"}.items():
        assert Claim("", printed, times("upper", "lower"), kind="value").verdict(MEASURED) == verdict


def test_tables_leave_out_what_was_not_measured() -> None:
    rows = table(figure("1", []), [*MEASURED, Point("third", 1, 1234.5)])
    assert rows[0] == "| place | upper | lower | third |"
    assert rows[2:4] == ["| 1 | 4 | 2 | 1,230 |", "| 2 | 9 | 3 |  |"]


@pytest.fixture(scope="module")
def small() -> tuple[StreamJoin, joins.Feed]:
    window, batch = 400, 100
    feed = joins.alternating([datacentre_readings(800, 200.0, seed) for seed in (1, 2)], batch, window)
    return queries.q1(SPOJoin(2), window, 100, batch), feed


def test_a_run_counts_the_rows_and_pairs_after_the_windows_are_full(small: tuple[StreamJoin, joins.Feed]) -> None:
    join, feed = small
    assert feed.measured == 800
    run, virtual = joins.run(join, feed), joins.virtual(join, feed)
    inputs = {name: pa.Table.from_batches([rows for each, rows in feed.batches if each == name]) for name in "RS"}
    pairs = join.collect(inputs)
    # the number of the batch that a result belongs to; the last one of S before the measurement passes the gate in it,
    # and the very last one only at the end of the input
    number = np.maximum(pairs["R.id"].to_numpy() // 100 * 2, pairs["S.id"].to_numpy() // 100 * 2 + 1)
    assert run.pairs == np.sum(number >= feed.filling - 1) > 100
    assert virtual.pairs == np.sum((number >= feed.filling - 1) & (number < 15))
    assert run.latency == ()
    assert {"router", "mutable", "po-join"} <= run.busy.keys()
    assert {"router", "mutable", "po-join[0]", "po-join[1]"} <= virtual.busy.keys()


def test_latency_runs_from_when_a_batch_was_due(small: tuple[StreamJoin, joins.Feed]) -> None:
    join, feed = small
    latency = joins.run(join, feed, 20_000).latency
    assert len(latency) == len(joins.PERCENTILES)
    assert 0 < latency[0] <= latency[-1]
    assert sorted(latency) == list(latency)
