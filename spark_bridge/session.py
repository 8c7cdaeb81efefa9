"""A Spark session on this machine, and the Java it needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from spark_bridge.errors import SparkUnavailableError

JAVA_VERSION = 17
"""The oldest Java that Spark 4 runs on."""

LOOPBACK = "127.0.0.1"

_HOW_TO_GET_JAVA = (
    f"Install Java {JAVA_VERSION} or newer (Debian, Ubuntu: apt install openjdk-17-jre-headless; "
    "macOS: brew install openjdk@17; conda: conda install -c conda-forge openjdk=17) "
    "and put it on the PATH, or set JAVA_HOME. Everything except Spark works without it."
)
_LOGGING = """\
rootLogger.level = error
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{5}
"""


def require_java() -> int:
    """Return the version of Java that Spark would use; raise `SparkUnavailableError` if it is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        where = f"in JAVA_HOME={home}" if home else "on the PATH"
        raise SparkUnavailableError(f"Spark needs Java, but there is none {where}. {_HOW_TO_GET_JAVA}")
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SparkUnavailableError(f"Spark needs Java: {java} does not run ({error}). {_HOW_TO_GET_JAVA}") from None
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if answer.returncode or found is None:
        raise SparkUnavailableError(f"Spark needs Java, but {java} does not run. {_HOW_TO_GET_JAVA}")
    version = int(found[1])
    if version < JAVA_VERSION:
        raise SparkUnavailableError(f"Spark needs Java {JAVA_VERSION}, but {java} is {version}. {_HOW_TO_GET_JAVA}")
    return version


def local_session(
    name: str = "interlace", *, master: str = "local[2]", memory: str = "1g", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark on this machine: on the loopback address only, without web pages, logging only errors.

    Its Python workers run this Python and can import this package, installed or not. If a session exists already, it is
    returned, with those `settings` added that can still be changed.
    """
    require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
    with tempfile.TemporaryDirectory(prefix="interlace-") as directory, without_pandas_warning():
        logging = Path(directory) / "log4j2.properties"  # read once, when the JVM starts
        logging.write_text(_LOGGING)
        chosen = {
            "spark.driver.bindAddress": LOOPBACK,
            "spark.driver.host": LOOPBACK,
            "spark.driver.memory": memory,
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging.as_uri()}",
            "spark.executorEnv.PYTHONPATH": str(Path(__file__).resolve().parent.parent),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            **(settings or {}),
        }
        builder = SparkSession.builder.appName(name).master(master)
        for key, value in chosen.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


@contextmanager
def without_pandas_warning() -> Iterator[None]:
    """Use it around Spark's Arrow functions, which warn about new versions of pandas although they do not use it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        yield


def is_connected(given: SparkSession | DataFrame) -> bool:
    """Whether a session or DataFrame is one of Spark Connect."""
    return type(given).__module__.startswith("pyspark.sql.connect")
