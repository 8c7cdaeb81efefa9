"""One Spark session for the run: starts with the first test that needs it and ends with the last.

Without Java these tests are skipped; with CI=true they fail (`tests/skips_in_ci.py`).
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.connect.session import SparkSession as RemoteSession

from spark_bridge import SparkUnavailableError, local_session, require_java

CONNECT_PORT = "spark.connect.grpc.binding.port"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@pytest.fixture
def connected(spark: SparkSession) -> Iterator[RemoteSession]:
    """A session of Spark Connect with the Spark of the tests."""
    session = RemoteSession.builder.remote(f"sc://127.0.0.1:{spark.conf.get(CONNECT_PORT)}").create()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
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
            "spark.sql.timeType.enabled": "true",
            "spark.eventLog.enabled": "true",  # no token may be in it
            "spark.eventLog.dir": tmp_path_factory.mktemp("events").as_uri(),
            "spark.eventLog.compress": "false",
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",  # a server, for `connected`
            CONNECT_PORT: str(free_port()),
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
