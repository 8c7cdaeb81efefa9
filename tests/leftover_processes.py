"""No process that a test starts outlives the run: Ray's daemons, Spark's JVM, programs with Flight servers.

A plugin of pytest. Every process of the run inherits an environment variable that names the run, so its descendants
are found even after their parents have ended, and other people's processes are not mistaken for them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from pathlib import Path
from uuid import uuid4

import pytest

RUN = "INTERLACE_TEST_RUN"
PATIENCE_SECONDS = 60
"""How long ended processes may take to vanish; on an idle machine they need less than a second."""


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # workers of pytest-xdist belong to the run that started them
        os.environ[RUN] = uuid4().hex


def processes_of(run: str) -> dict[int, str]:
    """Command lines by process id of the running processes that were started with this run's mark.

    Reads /proc, which shows the environment a process was started with: the test process itself is not among them.
    Empty on systems without /proc.
    """
    mark = f"{RUN}={run}".encode()
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:  # ended just now, or another user's
            continue
    return found


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """After everything else has been torn down, including the workers of pytest-xdist."""
    outcome = yield
    if hasattr(session.config, "workerinput"):
        return outcome
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (left := processes_of(os.environ[RUN])) and time.monotonic() < deadline:
        time.sleep(0.1)
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        assert reporter is not None
        reporter.section("processes that outlived the tests", red=True)
        for number, command in left.items():
            reporter.line(f"{number}  {command[:200]}")
    return outcome
