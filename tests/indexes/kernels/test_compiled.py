"""Kernels are compiled with their first call, and found on disk by every later process that runs the same sources."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from indexes.kernels.compiled import kernel

REPOSITORY = Path(__file__).parents[3]
INNER = """
from indexes.kernels.compiled import kernel

@kernel
def inner() -> int:
    return {answer}
"""
OUTER = """
from parts.inner import inner
from indexes.kernels.compiled import kernel

@kernel
def outer() -> int:
    return inner()

print(outer(), sum(outer.dispatcher.stats.cache_hits.values()))
"""


def run(folder: Path, program: list[str], cache: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY}", "PYTHONDONTWRITEBYTECODE": "1"}
    environment["INTERLACE_KERNEL_CACHE"] = str(cache)
    return subprocess.check_output([sys.executable, *program], cwd=folder, env=environment, text=True).strip()


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A package of two kernels, one of which calls the other."""
    package = tmp_path / "parts"
    package.mkdir()
    (package / "outer.py").write_text(OUTER)
    (package / "inner.py").write_text(INNER.format(answer=1))
    return package


def test_a_kernel_is_compiled_anew_when_one_that_it_calls_changes(parts: Path, tmp_path: Path) -> None:
    def answer() -> str:
        return run(tmp_path, ["-m", "parts.outer"], tmp_path / "cache")

    assert answer() == "1 0"
    assert answer() == "1 1"
    (parts / "unrelated.py").write_text("NUMBER = 1")
    assert answer() == "1 1"
    (parts / "inner.py").write_text(INNER.format(answer=2))
    assert answer() == "2 0"


def test_a_copy_of_the_sources_finds_the_same_machine_code(parts: Path, tmp_path: Path) -> None:
    """A cluster unpacks the code into another directory for every job."""
    assert run(tmp_path, ["-m", "parts.outer"], tmp_path / "cache") == "1 0"
    elsewhere = tmp_path / "job"
    elsewhere.mkdir()
    (elsewhere / "parts").mkdir()
    for file in parts.glob("*.py"):
        (elsewhere / "parts" / file.name).write_text(file.read_text())
    assert run(elsewhere, ["-m", "parts.outer"], tmp_path / "cache") == "1 1"


def test_processes_that_start_together_compile_a_kernel_once(parts: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(3) as threads:
        answers = threads.map(lambda _: run(tmp_path, ["-m", "parts.outer"], tmp_path / "cache"), range(3))
    assert sorted(answers) == ["1 0", "1 1", "1 1"]


def test_numba_is_imported_with_the_first_call(tmp_path: Path) -> None:
    program = "import sys, numpy, indexes; from indexes import *; before = 'numba' in sys.modules; "
    program += "Matches.concat_by_row([Matches(numpy.arange(2), numpy.arange(1))] * 2); "
    program += "print(before, 'numba' in sys.modules)"
    assert run(tmp_path, ["-c", program], tmp_path) == "False True"


def test_kernels_can_be_prepared_before_the_first_call(tmp_path: Path) -> None:
    program = "import sys, indexes; indexes.prepare_kernels(); print('numba' in sys.modules)"
    assert run(tmp_path, ["-c", program], tmp_path) == "True"


def test_machine_code_is_loaded_without_the_compiler(parts: Path, tmp_path: Path) -> None:
    program = "import sys, parts.outer; print('numba.misc.cffiimpl' in sys.modules)"  # what only a compiler needs

    def answers() -> list[str]:
        return run(tmp_path, ["-c", program], tmp_path / "cache").splitlines()

    assert answers() == ["1 0", "True"]
    assert answers() == ["1 1", "False"]


def test_a_kernel_that_is_compiled_may_call_one_that_was_loaded(parts: Path, tmp_path: Path) -> None:
    program = "from parts.inner import inner; inner(); import parts.outer; "
    program += "print(sum(inner.dispatcher.stats.cache_hits.values()))"

    def answers() -> list[str]:
        return run(tmp_path, ["-c", program], tmp_path / "cache").splitlines()

    assert answers() == ["1 0", "0"]
    (parts / "outer.py").write_text(OUTER.replace("inner()", "inner() + 1"))
    assert answers() == ["2 0", "1"]


@kernel
def total(numbers: np.ndarray) -> float:
    """The sum of an array."""
    found = 0.0
    for number in numbers:
        found += number
    return found


def test_a_kernel_keeps_the_name_and_the_text_of_its_function() -> None:
    assert (total.__name__, total.__doc__, total.__module__) == ("total", "The sum of an array.", __name__)


def test_each_type_has_code_of_its_own() -> None:
    assert total(np.array([1, 2])) == 3.0
    assert total(np.array([0.5, 0.25])) == 0.75
    assert len(total.dispatcher.signatures) == 2
