"""Gets Spark's executors ready: asks them what they have, sends what they lack of ours, and names what is missing.

Executors need pyarrow and a way to the endpoint. Our own code is sent to them if they have none, or another.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from spark_bridge import probe
from spark_bridge.shipped_code import shipped_code
from topology import ConnectionLostError, Endpoint, MissingPackageError

OLDEST_PYARROW = 18
PROBES = 4
"""How many tasks ask; Spark spreads them over its executors."""

_ready: set[tuple[str, str]] = set()
_lock = threading.Lock()


def prepare_executors(spark: SparkSession, endpoint: Endpoint) -> None:
    """Make sure that executors can call an endpoint, once for each application of Spark and machine of a topology.

    Raises a `MissingPackageError` or a `ConnectionLostError` that names the machine and what is missing there.
    """
    key = _application(spark), str(urlsplit(endpoint.location).hostname)
    with _lock:
        if key in _ready:
            return
        if any(not has_our_code(told) for told in _asked(spark, endpoint)):
            spark.addArtifacts(str(shipped_code()), pyfile=True)
            for told in _asked(spark, endpoint):
                if not has_our_code(told):
                    raise MissingPackageError(
                        f"Spark's executor on {told['machine']} imports other code of interlace than this program, "
                        f"although it was sent: remove interlace from the executors' Python, or install this version"
                    )
        _ready.add(key)


def has_our_code(told: Mapping[str, str]) -> bool:
    """Whether a worker imports the code that this process has."""
    return told["code"] == probe.code_digest()


def require_fit(told: Mapping[str, str], location: str) -> None:
    """Raise an error if a worker cannot do its work, whatever is sent to it."""
    machine = told["machine"]
    if not told["pyarrow"] or int(told["pyarrow"].split(".")[0]) < OLDEST_PYARROW:
        has = f"pyarrow {told['pyarrow']}" if told["pyarrow"] else "no pyarrow"
        raise MissingPackageError(
            f"Spark's executor on {machine} has {has} in Python {told['python']}: install pyarrow {OLDEST_PYARROW} or "
            f"newer there, or name a Python that has it (PYSPARK_PYTHON, spark.pyspark.python)"
        )
    if told["unreachable"]:
        raise ConnectionLostError(
            f"Spark's executor on {machine} cannot reach the topology at {location} ({told['unreachable']}): a "
            f"loopback address is reachable only from its own machine; launch the topology where it has an address of "
            f"the network, and let firewalls pass it"
        )


def _application(spark: SparkSession) -> str:
    """What names the processes that run tasks of a session; a session of Spark Connect has its own."""
    session: str | None = getattr(spark, "session_id", None)
    return session or str(spark.sparkContext.applicationId)


def _asked(spark: SparkSession, endpoint: Endpoint) -> list[dict[str, str]]:
    """Ask some workers what they have."""
    address = urlsplit(endpoint.location)
    assert address.hostname is not None, "an endpoint has an address"
    assert address.port is not None, "an endpoint has a port"
    ask: Any = sql.udf(probe.Probe(address.hostname, address.port), "string", useArrow=False)
    cloudpickle.register_pickle_by_value(probe)
    try:
        rows = spark.range(0, PROBES, 1, PROBES).select(ask("id").alias("told")).collect()
    except PySparkException as error:
        if "PYTHON_VERSION_MISMATCH" not in str(error):
            raise
        raise MissingPackageError(
            f"Spark's executors run another Python than this program, which has {sys.version.split()[0]}: give them "
            f"the same, with the setting spark.pyspark.python or the variable PYSPARK_PYTHON"
        ) from None
    finally:
        cloudpickle.unregister_pickle_by_value(probe)
    answers = [json.loads(row.told) for row in rows]
    for told in answers:
        require_fit(told, endpoint.location)
    return answers
