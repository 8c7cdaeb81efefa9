from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from examples import spark_join
from operators import CountWindow
from topology import LocalRuntime


def test_the_example_runs_and_finds_its_sample_right(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    spark_join.run(spark, LocalRuntime(), rows=20_000)
    assert "checked: all" in capsys.readouterr().out


def test_the_example_would_notice_a_wrong_result(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = spark_join.data_centre_join(CountWindow(2_000, slide=1_000))
    monkeypatch.setattr(spark_join, "data_centre_join", lambda window: narrow)
    with pytest.raises(SystemExit, match="but there are"):
        spark_join.run(spark, LocalRuntime(), rows=20_000)
