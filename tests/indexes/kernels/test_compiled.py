import os
import subprocess
import sys
from pathlib import Path

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
