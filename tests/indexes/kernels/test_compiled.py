import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from indexes.kernels.compiled import kernel

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

print(outer(), sum(outer.stats.cache_hits.values()))
"""


def test_a_kernel_is_compiled_anew_when_one_that_it_calls_changes(tmp_path: Path) -> None:
    repository = Path(__file__).parents[3]

    def run() -> str:
        environment = {**os.environ, "PYTHONPATH": f"{repository}", "PYTHONDONTWRITEBYTECODE": "1"}
        environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
        command = [sys.executable, "-m", "parts.outer"]
        return subprocess.check_output(command, cwd=tmp_path, env=environment, text=True).strip()

    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "outer.py").write_text(OUTER)
    (parts / "inner.py").write_text(INNER.format(answer=1))
    assert run() == "1 0"
    assert run() == "1 1"
    (parts / "unrelated.py").write_text("NUMBER = 1")
    assert run() == "1 1"
    (parts / "inner.py").write_text(INNER.format(answer=2))
    assert run() == "2 0"


def test_signatures_compiled_at_the_same_time_keep_their_own_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes share nothing but the files; two caches of one kernel do the same here."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    caches = [kernel(_identity)._cache._cache_file for _ in range(2)]
    read = type(caches[0])._load_index

    def slowly(self: Any) -> Any:
        overloads = read(self)
        time.sleep(0.1)  # the other cache gets time to read the same index
        return overloads

    monkeypatch.setattr(type(caches[0]), "_load_index", slowly)
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda number: caches[number].save(f"signature {number}", f"code {number}"), range(2)))
    assert [caches[0].load(f"signature {number}") for number in range(2)] == ["code 0", "code 1"]


def _identity(number: int) -> int:
    return number
