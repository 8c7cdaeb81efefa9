"""The cells of notebooks of examples/ that need no cluster run one after the other here, with the tests' Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("default")]  # of plots that nobody sees


class Shown:
    """What `display` returns in a notebook: an output that changes."""

    def update(self, content: object) -> None:
        pass


def run_cells(name: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Run a notebook; its session is the one that there is, and goes on."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr(type(spark), "stop", lambda session: None)
    monkeypatch.setattr("IPython.display.display", lambda *shown, **options: Shown())
    names: dict[str, Any] = {}
    for cell in nbformat.read(EXAMPLES / f"{name}.ipynb", 4).cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, f"{name}.ipynb", "exec"), names)  # noqa: S102  our own files
    return names


def test_from_spark_to_a_plot(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run_cells("spark_to_plot", spark, monkeypatch)
    assert found["table"]["offers"].sum() > 1000


def test_a_streaming_chart(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run_cells("streaming_chart", spark, monkeypatch)
    assert found["table"]["count"].sum() > 1000
    assert not spark.streams.active
