"""Shared by all tests: a small Ray cluster for each process that needs one, the tiers, and rules for every run."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import leftover_processes, skips_in_ci, tiers

# Tests do not depend on which kernels an earlier run has compiled; some are about the Python form.
os.environ.setdefault("INTERLACE_KERNELS", "compiled")

# A JVM of the tests lives for seconds, so it compiles quickly rather than well, and has one thread for its garbage.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
os.environ.setdefault("SPARK_SUBMIT_OPTS", SHORT_LIVED)
os.environ.setdefault("SPARK_LAUNCHER_OPTS", SHORT_LIVED)
os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "spark_settings"))

# The first example of a test may compile a kernel, and the machine may be busy: no test is judged by its time.
settings.register_profile("interlace", deadline=None, print_blob=True)
settings.load_profile("interlace")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    parser.addoption("--quick", action="store_true", help="leave out clusters and long tests, try fewer examples")
    parser.addoption("--slow", action="store_true", help="also run long soaks and many more random examples")
    for plugin in (leftover_processes, skips_in_ci, tiers):
        pluginmanager.register(plugin)


def pytest_configure() -> None:
    # A shell starts background jobs with Ctrl-C ignored; tests that press it would then wait for ever.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[None]:
    """Started with the first test that needs it."""
    import ray

    ray.init(
        address="local",
        num_cpus=4,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=80 * 1024 * 1024,
    )
    yield
    ray.shutdown()
