"""Overload and soak: `python -m tests.endurance overload --minutes 3`, `python -m tests.endurance soak --minutes 20`.

Both run a join with a state in a process of its own, at full load, and look at it every half second: memory,
descriptors, threads, state and log must stay flat, and results and their numbers must be those of a quiet run.

overload: for a third of the time the reader is ten times too slow; then it stalls; then it reads on.
soak:     every minute (`--every`) the process is killed and started again, or frozen for a while.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.cluster import chaos_program
from tests.endurance.sampling import Sample, growth, sample

EVERY_SECONDS = 0.5
PATIENCE = 300.0
STALLED = 10**6
"""Seconds; the file is removed before."""


class Endurance:
    """The program, what it has used since it was last started, and how it is made to suffer."""

    def __init__(self, folder: Path) -> None:
        self.faults = 0
        self.samples: list[Sample] = []
        self._folder = folder
        (folder / "state").mkdir()
        self._log = folder / "log"
        self._program = self._start()

    def watch(self, seconds: float) -> None:
        """Look at the program for some time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self._program.poll() is None, self._log.read_text()[-3000:]
            found = sample(self._program.pid, self._folder / "state", self._log)
            if found is not None:
                self.samples.append(found)
            time.sleep(EVERY_SECONDS)

    def pause_reader(self, seconds: float) -> None:
        """Make the reader wait so long after each batch of results; 0: not at all."""
        place = self._folder / "pause"
        if seconds:
            place.write_text(str(seconds))
        else:
            place.unlink(missing_ok=True)

    def kill(self) -> None:
        """Kill the program, and start it again."""
        self.faults += 1
        self._program.kill()
        self._program.wait()
        self._program = self._start()

    def freeze(self, seconds: float) -> None:
        """Stop the program for a while."""
        self.faults += 1
        self._program.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._program.send_signal(signal.SIGCONT)

    def conclude(self) -> int:
        """End the streams, and check all results; return how many there were."""
        self.pause_reader(0)
        (self._folder / "stop").write_text("")
        results = self._folder / "results"
        size, deadline = results.stat().st_size, time.monotonic() + PATIENCE
        while self._program.poll() is None and time.monotonic() < deadline:
            if results.stat().st_size > size:
                size, deadline = results.stat().st_size, time.monotonic() + PATIENCE
            time.sleep(EVERY_SECONDS)
        assert self._program.poll() == 0, self._log.read_text()[-3000:]
        return chaos_program.check(self._folder)

    def end(self) -> None:
        """End the program, whatever it does."""
        self._program.kill()
        self._program.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, chaos_program.__file__, "local", str(self._folder / "state"), str(self._folder)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=Path(__file__).parents[2],
                env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin", "HOME": str(self._folder)},
            )  # fmt: skip


def overload(given: argparse.Namespace, run: Endurance) -> None:
    """A reader that is ten times too slow, then stalled, then back."""
    third = 20 * given.minutes
    run.pause_reader(given.pause)
    run.watch(third)
    run.pause_reader(STALLED)
    run.watch(third)
    run.pause_reader(0)
    run.watch(third)


def soak(given: argparse.Namespace, run: Endurance) -> None:
    """Load, and a fault now and then."""
    end = time.monotonic() + 60 * given.minutes
    while time.monotonic() < end:
        run.watch(given.every)
        if run.faults % 2:
            run.freeze(min(10.0, given.every / 4))
        else:
            run.kill()
    run.watch(given.every)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.endurance", description=__doc__)
    parser.add_argument("what", choices=["overload", "soak"])
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--every", type=float, default=60.0, help="seconds between faults of a soak")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds for each batch of results in an overload")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        run = Endurance(Path(folder))
        try:
            {"overload": overload, "soak": soak}[given.what](given, run)
            results = run.conclude()
        finally:
            run.end()
    grown = growth(run.samples)
    last = run.samples[-1]
    print(
        f"{given.what}: {given.minutes:g} minutes, {run.faults} faults, {results:,} results as in a quiet run; "
        f"at the end {last.memory / 1024**2:,.0f} MiB of memory, {last.descriptors} descriptors, "
        f"{last.threads} threads, {last.state / 1024**2:,.1f} MiB of state, {last.log:,} bytes of log"
    )
    print("flat" if not grown else "; ".join(grown))
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
