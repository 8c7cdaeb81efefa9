"""Word count with fields grouping: the example is the test."""

import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.word_count import LINES, TEXT, count, line_batches, split_words, word_count
from tests.topology.waiting import LONG
from topology import LocalRuntime

ROOT = Path(__file__).parents[2]

texts = st.lists(
    st.lists(st.sampled_from(["join", "Stream", "it's", "naïve", "9", "--", ""]), max_size=6).map(" ".join), max_size=12
)


def expected(lines: list[str]) -> Counter[str]:
    return Counter(word for line in lines for word in re.findall(r"[^\W_]+(?:'[^\W_]+)*", line.lower()))


def counted(batches: list[pa.RecordBatch], tasks: int) -> Counter[str]:
    with LocalRuntime().launch(word_count(tasks)) as running:
        for number, rows in enumerate(batches):
            running.send("lines", rows, source=f"file {number % 2}")
        running.finish()
        rows = [row for part in running.results() for row in part.to_pylist()]
    totals = Counter({row["word"]: row["count"] for row in rows})
    assert len(totals) == len(rows), "a word was counted by two tasks"
    return totals


@settings(max_examples=25, deadline=None)
@given(lines=texts, cuts=st.lists(st.integers(0, 12), max_size=5).map(sorted), tasks=st.integers(1, 3))
def test_neither_batch_cuts_nor_parallelism_change_the_counts(lines: list[str], cuts: list[int], tasks: int) -> None:
    bounds = [0, *(min(cut, len(lines)) for cut in cuts), len(lines)]
    whole = pa.record_batch([pa.array(lines, pa.string())], schema=LINES)
    batches = [whole.slice(start, stop - start) for start, stop in pairwise(bounds)]
    assert counted(batches, tasks) == expected(lines)


def test_words_are_split_by_arrow_as_by_hand() -> None:
    rows = pa.record_batch({"line": ["", "  A stream -- it's a stream;", "x"]})
    assert split_words(rows).column("word").to_pylist() == ["a", "stream", "it's", "a", "stream", "x"]


def test_the_example_counts_its_own_text(capsys: pytest.CaptureFixture[str]) -> None:
    totals = count(word_count(), {"text": TEXT}, LocalRuntime())
    assert totals == expected(TEXT.splitlines())
    assert "split" in capsys.readouterr().out


def test_long_texts_are_cut_into_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("examples.word_count.LINES_PER_BATCH", 2)
    assert [rows.num_rows for rows in line_batches("a\nb\nc\nd\ne")] == [2, 2, 1]


@pytest.mark.parametrize("command", [["-m", "examples.word_count"], ["examples/word_count.py"]], ids=["module", "file"])
def test_the_example_runs_as_it_stands(command: list[str], tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be", encoding="utf-8")
    finished = subprocess.run(
        [sys.executable, *command, "--tasks", "3", "--top", "2", str(text)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=LONG,
        check=True,
    )
    assert "count x3 [CountWords]" in finished.stdout
    assert finished.stdout.splitlines()[-2:] == ["       2  be", "       2  to"]
