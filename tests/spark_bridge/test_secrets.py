"""Tokens are in nothing that Spark shows or writes: no plan, no event log, no page, no answer of its REST interface."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

from spark_bridge import InterlaceDataSource, SparkUnavailableError, connect_spark, feed, require_java
from spark_bridge.options import TOKEN
from tests.spark_bridge.micro_batches import add_files, random_batches, streamed, trips_join
from tests.spark_bridge.told_by_spark_program import REDACTED, from_interlace, to_interlace, tokens_of
from tests.topology.waiting import wait_for
from topology import Handle, LocalRuntime

ROOT = Path(__file__).parents[2]


def event_log(spark: SparkSession) -> str:
    """What Spark has written so far."""
    folder = Path(urlsplit(str(spark.conf.get("spark.eventLog.dir"))).path)
    return "\n".join(path.read_text() for path in folder.rglob("*") if path.is_file() and path.suffix != ".crc")


@pytest.mark.parametrize("setting", [TOKEN, f"{TOKEN}.R"])
def test_a_token_that_a_session_sets_is_in_no_plan_and_no_event_log(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], setting: str
) -> None:
    add_files(tmp_path / "r", random_batches(41, 1))
    with trips_join().launch(LocalRuntime()) as running:
        spark.conf.set(setting, str(running.endpoint("R").token))
        spark.dataSource.register(InterlaceDataSource)
        try:
            query = to_interlace(streamed(spark, tmp_path / "r"), running, "R", tmp_path / "c")
            assert query.awaitTermination(300)
            query.explain(True)
        finally:
            spark.conf.unset(setting)
        wait_for(lambda: f'"{setting}":"{REDACTED}"' in event_log(spark))
        assert_silent(running, event_log(spark) + capsys.readouterr().out)


def test_tokens_of_a_handle_are_in_no_plan_and_no_event_log(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_files(tmp_path / "r", random_batches(42, 1))
    bounded = spark.createDataFrame([(1, 10_000, 5)], "id LONG, ts LONG, x LONG")
    with trips_join().launch(LocalRuntime()) as running:
        connect_spark(spark, running)
        fed = feed(streamed(spark, tmp_path / "r"), running, checkpoint=tmp_path / "c", trigger={"availableNow": True})
        fed.awaitTermination(300)
        fed.explain(True)
        feed(bounded, running, "S", progress=False)
        running.finish()
        found = from_interlace(spark, running)
        found.collect()
        found.explain(True)
        wait_for(lambda: fed.id in event_log(spark))
        plans = capsys.readouterr().out
        assert "interlace" in plans.lower()
        assert_silent(running, event_log(spark) + plans)


def assert_silent(running: Handle, told: str) -> None:
    for name, token in tokens_of(running).items():
        assert token not in told, f"the token of {name} is told"


@pytest.mark.spark
@pytest.mark.slow  # a Spark of its own, with pages
def test_no_page_and_no_answer_of_the_rest_interface_has_a_token(tmp_path: Path) -> None:
    try:
        require_java()
    except SparkUnavailableError as error:
        pytest.skip(str(error))
    command = [sys.executable, "-m", "tests.spark_bridge.told_by_spark_program", str(tmp_path)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert found.returncode == 0, found.stderr[-2000:]
    assert json.loads(found.stdout.splitlines()[-1]) == {"leaks": [], "redacted": True, "queries": True}
