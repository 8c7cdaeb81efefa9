"""Gets Spark's executors ready: asks them what they have, sends what they lack of ours, and names what is missing.

Executors need pyarrow and a way to the endpoint. Our own code is sent to them if they have none, or another.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_bridge import probe
from spark_bridge.session import is_connected
from spark_bridge.shipped_code import shipped_code
from topology import ConnectionLostError, Endpoint, MissingPackageError

OLDEST_PYARROW = 18
PROBES = 4
"""How many tasks ask; Spark spreads them over its executors."""

ASKED_AGAIN_SECONDS = 600.0
"""How long an answer counts: executors that come later may have less."""

_asked_at: dict[tuple[str, str], float] = {}
"""When executors were asked last, by application of Spark and what they must reach; "" for what they must have."""
_lock = threading.Lock()


def prepare_executors(spark: SparkSession, endpoint: Endpoint | None = None) -> None:
    """Make sure that executors have what they need, and can call an endpoint if one is given.

    Asks them once for each application of Spark and address, and again after ten minutes. Before a topology is
    launched, call it without an endpoint. Raises a `MissingPackageError` or a `ConnectionLostError` that names the
    machine and what is missing there.
    """
    application, location = _application(spark), "" if endpoint is None else endpoint.location
    reached = location and _reached(location)
    with _lock:
        if _is_fresh(application, reached):
            return
        answers = _asked(spark, location)
        if any(not has_our_code(told) for told in answers):
            spark.addArtifacts(str(shipped_code()), pyfile=True)
            for told in _asked(spark, ""):
                if not has_our_code(told):
                    raise MissingPackageError(
                        f"Spark's executor on {told['machine']} imports other code of interlace than this program, "
                        f"although it was sent: remove interlace from the executors' Python, or install this version"
                    )
        _asked_at[application, ""] = _asked_at[application, reached] = time.monotonic()


def _is_fresh(application: str, reached: str) -> bool:
    """Whether executors have been asked lately."""
    asked = _asked_at.get((application, reached))
    return asked is not None and time.monotonic() - asked < ASKED_AGAIN_SECONDS


def _reached(location: str) -> str:
    """What the probe of an address tells of: a loopback address with all its ports, another with this port alone."""
    address = urlsplit(location)
    host = str(address.hostname)
    return host if host == "localhost" or host.startswith("127.") or host == "::1" else f"{host}:{address.port}"


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


def _asked(spark: SparkSession, location: str) -> list[dict[str, str]]:
    """Ask some workers what they have, and whether they reach a location; an empty one is not tried."""
    address = urlsplit(location)
    sql: Any = import_module("pyspark.sql.connect.functions" if is_connected(spark) else "pyspark.sql.functions")
    ask = sql.udf(probe.Probe(address.hostname or "", address.port or 0), "string", useArrow=False)
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
        require_fit(told, location)
    return answers
