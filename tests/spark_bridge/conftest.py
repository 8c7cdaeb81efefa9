"""One Spark session for the run: starts with the first test that needs it and ends with the last.

Without Java these tests are skipped; with CI=true they fail (`tests/skips_in_ci.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_bridge import SparkUnavailableError, local_session, require_java


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    try:
        require_java()
    except SparkUnavailableError as error:
        pytest.skip(str(error))
    session = local_session(
        "interlace tests",
        master="local[2,3]",  # two slots, and three attempts at each task
        settings={
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "50",  # several batches in a small partition
            "spark.sql.session.timeZone": "America/New_York",
            "spark.python.task.killTimeout": "200ms",
        },
    )
    yield session
    session.stop()
    gateway = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()  # the JVM ends when its parent's end of this pipe closes
    gateway.proc.wait(timeout=300)
