"""A call is answered at once, by Python or by machine code; only a large one waits until the kernel is compiled."""

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.errors import NumbaError

from indexes.kernels import dispatch
from indexes.kernels.background import COMPILER
from indexes.kernels.compiled import Kernel, compiled_kernel, kernel
from indexes.kernels.machine_code import MachineCode

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both forms are allowed, and nothing has been compiled before."""
    monkeypatch.setattr(dispatch, "form", lambda: "")
    monkeypatch.setattr(dispatch, "_store_of_this_process", lambda: MachineCode(tmp_path))


def doubled(numbers: np.ndarray) -> int:
    total = 0
    for number in numbers:
        total += 2 * number
    return total


def signatures(used: Kernel) -> int:
    return len(used.dispatcher.signatures)


def test_python_answers_until_the_kernel_is_compiled() -> None:
    used = kernel(doubled)
    hold = COMPILER._working  # no job begins meanwhile
    with hold:
        assert used(np.arange(4)) == 12
        assert used(np.arange(5)) == 20
        assert signatures(used) == 0
    COMPILER.wait()
    assert signatures(used) == 1
    assert used(np.arange(4)) == 12


def test_the_next_process_loads_what_was_compiled_behind() -> None:
    first, second = kernel(doubled), kernel(doubled)
    first(np.arange(4))
    COMPILER.wait()
    assert second(np.arange(4)) == 12
    assert sum(second.dispatcher.stats.cache_hits.values()) == 1


def test_a_large_call_waits_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    dispatch._say_that_it_takes_time.cache_clear()
    used = kernel(doubled)
    with caplog.at_level(logging.WARNING, "interlace"):
        assert used(np.ones(dispatch.MOST_ELEMENTS + 1, np.int64)) == 2 * (dispatch.MOST_ELEMENTS + 1)
    assert signatures(used) == 1
    assert [record.message for record in caplog.records] == [
        "compiling kernels, which takes some seconds, once per machine"
    ]


def test_a_kernel_is_not_interpreted_for_longer_than_compiling_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    used = kernel(doubled)
    with COMPILER._working:  # no job begins meanwhile
        used(np.arange(4))
        assert signatures(used) == 0
        monkeypatch.setattr(dispatch, "PATIENCE_SECONDS", 1e-9)
        assert used(np.arange(4)) == 12
        assert signatures(used) == 1


def test_a_kernel_of_all_pairs_is_never_interpreted() -> None:
    used = compiled_kernel(doubled)
    assert used(np.arange(4)) == 12
    assert signatures(used) == 1
    caller = kernel(_calls_pairs)
    assert caller.python is None


_pairs = compiled_kernel(doubled)


def _calls_pairs(numbers: np.ndarray) -> Any:
    return _pairs(numbers)


def _broken(numbers: np.ndarray) -> str:
    return str(type(numbers))


def test_an_error_of_the_compiler_reaches_the_caller() -> None:
    used = kernel(_broken)
    assert "ndarray" in used(np.arange(4))
    COMPILER.wait()
    with pytest.raises(NumbaError):
        used(np.arange(4))


@pytest.mark.parametrize(("asked", "compiled"), [("compiled", 1), ("interpreted", 0)])
def test_the_environment_can_ask_for_one_form(monkeypatch: pytest.MonkeyPatch, asked: str, compiled: int) -> None:
    monkeypatch.setattr(dispatch, "form", lambda: asked)
    used = kernel(doubled)
    assert used(np.arange(4)) == 12
    assert not COMPILER.busy
    assert signatures(used) == compiled


def run(program: str, cache: Path, form: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "INTERLACE_KERNEL_CACHE": str(cache)}
    environment["INTERLACE_KERNELS"] = form
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)


SORT = """
import numpy as np
from indexes import sorted_with_order
print(sorted_with_order(np.arange(5000)[::-1].copy())[0][:3])
"""


def test_a_program_may_end_while_its_kernels_are_compiled(tmp_path: Path) -> None:
    ended = run(SORT, tmp_path, "")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[0 1 2]\n", "")
    assert any(tmp_path.iterdir())  # the one under way was kept


def test_a_form_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    ended = run(SORT, tmp_path, "fast")
    assert 'INTERLACE_KERNELS=fast: set it to "compiled" or "interpreted", or unset it' in ended.stderr
