"""The rules that `tests/conftest.py` adds to every run, tried on small test files in a pytest of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough  # each test starts a pytest
ROOT = Path(__file__).parent.parent
SKIPPING = """
import pytest

def test_for_want_of_a_program():
    pytest.skip("no redis-server here")

@pytest.fixture
def java():
    pytest.skip("no Java here")

def test_for_want_of_java(java):
    pass

@pytest.mark.skipif(True, reason="no data here")
def test_for_want_of_data():
    pass

@pytest.mark.slow
def test_long():
    raise AssertionError("runs only with --slow")

@pytest.mark.xfail(strict=True)
def test_expected_failure():
    raise AssertionError

def test_that_passes():
    pass
"""


def run(directory: Path, program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `program` as the only test file, with this project's conftest and settings."""
    (directory / "test_program.py").write_text(program)
    inherited = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTEST_ADDOPTS")}
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-rA", *arguments]
    return subprocess.run(
        [*command, "-c", str(ROOT / "setup.cfg"), "--rootdir", str(directory), str(directory / "test_program.py")],
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_what_is_missing_skips_tests_on_a_developers_machine(tmp_path: Path) -> None:
    finished = run(tmp_path, SKIPPING)
    assert "1 passed, 4 skipped, 1 xfailed" in finished.stdout
    assert finished.returncode == 0


def test_what_is_missing_fails_tests_in_ci(tmp_path: Path) -> None:
    finished = run(tmp_path, SKIPPING, CI="true")
    assert finished.returncode == 1
    for reason in ("no redis-server here", "no Java here", "no data here"):
        assert f"CI=true allows no skips. Skipped: {reason}" in finished.stdout
    assert "1 passed, 1 skipped, 1 xfailed" in finished.stdout
    assert "SKIPPED [1] " in finished.stdout
    assert "a long run: --slow" in finished.stdout


def test_a_file_that_skips_itself_fails_in_ci(tmp_path: Path) -> None:
    program = "import pytest\npytest.importorskip('a_module_that_nobody_has')\ndef test_it(): pass"
    assert run(tmp_path, program).returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    finished = run(tmp_path, program, CI="true")
    assert finished.returncode not in (0, pytest.ExitCode.NO_TESTS_COLLECTED)
    assert "CI=true allows no skips" in finished.stdout


LEAVING = """
import subprocess, sys

def test_that_forgets_a_grandchild():
    forget = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep({seconds})'])"
    subprocess.run([sys.executable, "-c", forget], check=True)
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are found in /proc")
def test_a_process_that_outlives_the_tests_fails_the_run(tmp_path: Path) -> None:
    impatient = "import tests.leftover_processes\ntests.leftover_processes.PATIENCE_SECONDS = 1\n"
    finished = run(tmp_path, impatient + LEAVING.replace("{seconds}", "1000"))
    left = re.search(r"processes that outlived the tests.*\n(\d+) .*time.sleep\(1000\)", finished.stdout)
    assert left, finished.stdout
    os.kill(int(left[1]), signal.SIGKILL)
    assert finished.returncode == 1


def test_a_process_that_ends_soon_after_the_tests_is_waited_for(tmp_path: Path) -> None:
    finished = run(tmp_path, LEAVING.replace("{seconds}", "1"))
    assert "outlived" not in finished.stdout
    assert finished.returncode == 0


TIERS = """
import pytest
from hypothesis import given, settings, strategies as st

examples = []

@given(st.integers())
@settings(max_examples=200)
def test_random(number):
    examples.append(number)

def test_number_of_examples():
    assert len(examples) == {examples}

@pytest.fixture
def ray_cluster():
    raise AssertionError("started")

def test_on_ray(ray_cluster):
    pass

@pytest.mark.thorough
def test_thorough():
    pass
"""


def test_the_quick_tier_leaves_out_clusters_and_long_tests_and_tries_fewer_examples(tmp_path: Path) -> None:
    everything = run(tmp_path, TIERS.replace("{examples}", "200"), "--slow")
    assert "3 passed, 1 error" in everything.stdout
    usual = run(tmp_path, TIERS.replace("{examples}", "66"))
    assert "3 passed, 1 error" in usual.stdout
    quick = run(tmp_path, TIERS.replace("{examples}", "20"), "--quick")
    assert "2 passed, 2 deselected" in quick.stdout


FIXTURE = """
from pathlib import Path
import pytest

@pytest.fixture(scope="session")
def {fixture}():
    with Path("{log}").open("a") as log:
        log.write("{fixture} ")
"""
USERS = """
import pytest

@pytest.mark.parametrize("n", range(5))
def test_with_{fixture}({fixture}, n):
    pass

@pytest.mark.parametrize("n", range(5))
def test_without_{fixture}(n):
    pass
"""


@pytest.mark.parametrize(("fixtures", "starts"), [(("ray_cluster", "spark"), 1), (("machines", "another"), 2)])
def test_a_cluster_starts_once_although_there_are_two_workers(
    tmp_path: Path, fixtures: tuple[str, ...], starts: int
) -> None:
    """What is no cluster starts on both workers: the tests of a file stay together, and there are two files."""
    log, second = tmp_path / "log", tmp_path / "test_second.py"
    (tmp_path / "conftest.py").write_text("\n".join(FIXTURE.format(fixture=each, log=log) for each in fixtures))
    users = "\n".join(USERS.format(fixture=each) for each in fixtures)
    second.write_text(users)
    workers = ["--numprocesses", "2", "--dist", "loadgroup", "--no-loadscope-reorder"]
    finished = run(tmp_path, users, *workers, str(second))
    assert "40 passed" in finished.stdout
    assert sorted(log.read_text().split()) == sorted(starts * fixtures)
