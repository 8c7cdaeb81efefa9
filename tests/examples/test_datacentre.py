from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numba
import pyarrow as pa
import pytest

from examples import datacentre
from examples.kernel_compilation import show_compilation
from examples.result_reader import ResultReader
from operators import RunningJoin

ROOT = Path(__file__).parents[2]
SMALL = ["--rows", "30000", "--window", "10000", "--slide", "1000", "--seconds", "0.2"]


def test_it_prints_throughput_then_latency_then_what_to_try(capsys: pytest.CaptureFixture[str]) -> None:
    datacentre.main(SMALL)
    printed = capsys.readouterr().out
    found = re.search(
        r"Kernels: .*\n.*Throughput: 60,000 readings.*\n  ([\d,]+) tuples/s.*"
        r"Latency: ([\d,]+) readings/s \(half.*p50 ([\d,.]+) ms, p99 ([\d,.]+) ms.*Try next:",
        printed,
        re.DOTALL,
    )
    assert found, printed
    rate, half, p50, p99 = (float(number.replace(",", "")) for number in found.groups())
    assert half == pytest.approx(rate / 2, abs=1)
    assert 0 < p50 <= p99


class Results:
    """Stands for a running join: gives results of fixed ids once they have been asked for."""

    def __init__(self, *batches: tuple[list[int], list[int]]) -> None:
        self._batches = batches
        self.ready = False

    def results(self) -> Iterator[pa.RecordBatch]:
        while not self.ready:
            time.sleep(0.001)
        for left, right in self._batches:
            yield pa.record_batch({"R.id": left, "S.id": right})


def test_latency_runs_from_when_the_later_reading_was_due() -> None:
    running = Results(([0, 9, 12], [1, 3, 5]), ([25] * 98, [20] * 98))
    reader = ResultReader(cast(RunningJoin, running))
    now = time.monotonic()
    reader.sent(10, now - 100)  # of the first batch only (12, 5) counts: the others were sent before measuring began
    reader.sent(20, now - 50)
    running.ready = True
    reader.wait()
    assert reader.results == 101
    p50, p99, longest = reader.latency(50, 98.9, 100)
    assert p50 == pytest.approx(50, abs=5)
    assert p99 == pytest.approx(50, abs=5)
    assert longest == pytest.approx(100, abs=5)


def test_an_error_while_reading_reaches_the_program() -> None:
    class Failing:
        def results(self) -> Any:
            raise ValueError("lost")

    reader = ResultReader(cast(RunningJoin, Failing()))
    with pytest.raises(ValueError, match="lost"):
        reader.wait()


def test_compiled_kernels_are_named_and_loaded_ones_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = numba.njit(lambda number: number + 1)
    with show_compilation():
        kernel(1)
    printed = capsys.readouterr()
    assert "Compiling kernels" in printed.out
    assert "Kernels: 1 compiled" in printed.out
    assert "<lambda>" in printed.err
    with show_compilation():
        kernel(1)
    assert "Kernels: loaded from disk" in capsys.readouterr().out


def test_ctrl_c_ends_it_without_a_traceback() -> None:
    command = [sys.executable, "-m", "examples.datacentre", "--rows", "1000000000", "--window", "10000"]
    program = subprocess.Popen(
        [*command, "--slide", "1000"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    while "Throughput" not in program.stdout.readline():
        assert program.poll() is None
    program.send_signal(signal.SIGINT)
    printed, errors = program.communicate(timeout=120)
    assert program.returncode == 130
    assert "Traceback" not in printed + errors
    assert errors.endswith("stopped\n")
