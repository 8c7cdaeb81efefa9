from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from spark_bridge import SparkUnavailableError, local_session, require_java
from spark_bridge.errors import ResultsLostError, described, restored
from topology import OutOfOrderError, TaskError


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path on which a test may put its own java; empty at first."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "java"


def test_a_missing_java_is_named_with_what_to_install(fake_java: Path) -> None:
    with pytest.raises(SparkUnavailableError, match=r"none on the PATH. Install Java 17 .*Everything except Spark"):
        local_session()


def test_a_java_home_without_java_is_named(fake_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java.parent / "nowhere"))
    with pytest.raises(SparkUnavailableError, match="none in JAVA_HOME="):
        require_java()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "Spark needs Java 17, but .* is 11"),
        ("echo 'java version \"1.8.0_392\"' >&2", "Spark needs Java 17, but .* is 8"),
        ("echo 'Unable to locate a Java Runtime.' >&2; exit 1", "does not run"),
    ],
)
def test_a_java_that_is_too_old_or_broken_is_named(fake_java: Path, script: str, said: str) -> None:
    fake_java.write_text(f"#!/bin/sh\n{script}\n")
    fake_java.chmod(0o755)
    with pytest.raises(SparkUnavailableError, match=said):
        require_java()


def test_importing_needs_no_java() -> None:
    root = Path(__file__).parent.parent.parent
    nowhere = {"PATH": "/nowhere"}
    subprocess.run([sys.executable, "-c", "import spark_bridge"], cwd=root, env=nowhere, check=True, timeout=300)


@pytest.mark.parametrize(
    "error", [OutOfOrderError("backwards"), TaskError("map", 3, "Traceback\nValueError: x"), ResultsLostError("gone")]
)
def test_errors_keep_their_type_and_words_on_the_way_to_the_driver(error: Exception) -> None:
    copy = restored(described(error))  # type: ignore[arg-type]
    assert type(copy) is type(error)
    assert str(copy) == str(error)
