"""Chaos on a real cluster: `python -m tests.cluster.chaos --minutes 5`, or `make chaos MINUTES=5`.

A Ray cluster of several machines, each a set of namespaces with a network and a disk of its own; the state of the join
is on an S3 server beside them, and the cluster's view of itself in Redis. While the join works at full load, workers,
the controller and raylets are killed and frozen, the GCS is killed, links are cut, and the program itself is killed and
started again. A fault is followed by the next one when rows that were sent after it have had results. At the end
results and their numbers must be those of a run without faults.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from tests.cluster import chaos_program
from tests.cluster.namespaces import PREFIX, Machine, Network, Program, refusal
from tests.cluster.ray_nodes import QUIET, RAY, SMALL, START_SECONDS, address_of, start_nodes

MACHINES = 3
STORE = f"{PREFIX}254"
STORE_PORT = 5555
STATE = f"s3://test:test@bucket/chaos?scheme=http&region=us-east-1&endpoint_override={STORE}%3A{STORE_PORT}"
REDIS_PORT = 6390
PROGRAM = Path(chaos_program.__file__)
PATIENCE = 300.0
"""Seconds without new results after which the join counts as lost."""

SHORT, LONG = 3.0, 15.0
"""Seconds for which something is away: nobody need notice, or those who wait for it do."""

RAYLET_LONG = 45.0
"""As `LONG`, for a raylet that stands still: Ray asks five times before it takes the node for dead."""

SERVER = f"""
import pyarrow.fs, time
from moto.server import ThreadedMotoServer
ThreadedMotoServer("{STORE}", {STORE_PORT}, verbose=False).start()
files = pyarrow.fs.S3FileSystem(access_key="test", secret_key="test", endpoint_override="{STORE}:{STORE_PORT}",
                                scheme="http", allow_bucket_creation=True)
files.create_dir("bucket")
print("serving", flush=True)
time.sleep(10**9)
"""


class Chaos:
    """A cluster, a join on it, and what can happen to both.

    faults:  how often each kind has happened.
    pauses:  by kind, the seconds from each fault to the first result of rows that were sent after it.
    """

    def __init__(self, network: Network, folder: Path, seed: int) -> None:
        self.faults: Counter[str] = Counter()
        self.pauses: dict[str, list[float]] = {}
        self._network = network
        self._folder = folder
        self._chance = Random(seed)
        self._programs = self._restarts = 0
        network.run("sh", "-ec", f"ip link set lo up; ip address add {STORE}/24 dev br0")
        server = network.start("python", "-c", SERVER, output=folder / "s3")
        server.wait_for("serving", START_SECONDS)
        redis = [
            "--bind",
            STORE,
            "--port",
            str(REDIS_PORT),
            "--protected-mode",
            "no",
            "--save",
            "",
            "--dir",
            str(folder),
        ]
        network.start("redis-server", *redis, output=folder / "redis").wait_for("Ready to accept", START_SECONDS)
        start_nodes(network.machines, folder, self._settings)
        self._program = self._start_program()

    def run(self, minutes: float, most: int | None = None) -> None:
        """Let things happen for some minutes, or so often, at least once."""
        kinds: dict[str, Callable[[], None]] = {
            "worker killed": lambda: self._kill(self._one(self._workers())),
            "worker frozen": self._freeze_a_worker,
            "controller killed": lambda: self._kill(self._one(self._controllers())),
            "controller frozen": self._freeze_the_controller,
            "program killed": self._kill_the_program,
            "raylet killed": self._kill_a_raylet,
            "raylet frozen": self._freeze_a_raylet,
            "GCS killed": self._kill_the_gcs,
            "link cut": self._cut_a_link,
        }
        order: list[str] = []
        end = time.monotonic() + 60 * minutes
        self._wait_for_results_of_new_rows()
        while not self.faults or (time.monotonic() < end and (most is None or sum(self.faults.values()) < most)):
            order = order or self._chance.sample([*kinds, "worker killed", "worker killed"], len(kinds) + 2)
            name = order.pop()
            self._rejoin_those_without_a_raylet()
            began = time.monotonic()
            try:
                kinds[name]()
            except LookupError:
                continue  # there is no such process at the moment
            self.faults[name] += 1
            self._wait_for_results_of_new_rows()
            pause = time.monotonic() - began
            self.pauses.setdefault(name, []).append(pause)
            print(f"{sum(self.faults.values()):>4}  {name:<18} {pause:6.1f} s to the next result", flush=True)

    def conclude(self) -> int:
        """End the streams, and compare all results with those of a run without faults; return how many there were."""
        (self._folder / "stop").write_text("")
        size, deadline = self._size(), time.monotonic() + PATIENCE
        while "done" not in self._program.output:
            assert time.monotonic() < deadline, f"the program does not end:\n{self._program.output[-3000:]}"
            if self._size() > size:
                size, deadline = self._size(), time.monotonic() + PATIENCE
            self._revive_the_program()
            time.sleep(0.2)
        return chaos_program.check(self._folder)

    def _settings(self, machine: Machine) -> dict[str, str]:
        shared = {"RAY_REDIS_ADDRESS": f"{STORE}:{REDIS_PORT}"} if machine is self._network.machines[0] else {}
        return {"TMPDIR": "/tmp/ray", **shared}  # the machine's own disk

    def _start_program(self) -> Program:
        self._programs += 1
        head = self._network.machines[0]
        output = self._folder / f"program-{self._programs}"
        return head.start("python", PROGRAM, "ray", STATE, self._folder, output=output, settings=self._settings(head))

    def _size(self) -> int:
        place = self._folder / "results"
        return place.stat().st_size if place.exists() else 0

    def _wait_for_results_of_new_rows(self) -> None:
        """Results that are on their way already prove nothing; those of rows that are sent from now on do."""
        new = chaos_program.sent(self._folder) + 2 * chaos_program.ROWS_SENT
        deadline = time.monotonic() + PATIENCE
        while chaos_program.latest(self._folder) < new:
            assert time.monotonic() < deadline, f"no results any more:\n{self._program.output[-3000:]}"
            self._revive_the_program()
            time.sleep(0.05)

    def _revive_the_program(self) -> None:
        """A program whose topology was lost with the cluster's view of its node is started again, as people do."""
        if self._program.ended and "done" not in self._program.output:
            self._program = self._start_program()

    # --- what can happen

    def _actors(self) -> dict[int, str]:
        return {
            process: title
            for machine in self._network.machines
            for process, title in machine.actors().items()
            if title.startswith("ray::chaos")
        }

    def _workers(self) -> list[int]:
        return [process for process, title in self._actors().items() if "/controller" not in title]

    def _controllers(self) -> list[int]:
        return [process for process, title in self._actors().items() if "/controller" in title]

    def _one(self, processes: list[int]) -> int:
        if not processes:
            raise LookupError("there is none")
        return self._chance.choice(sorted(processes))

    def _kill(self, process: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)

    def _freeze_a_worker(self) -> None:
        """Until somebody else has its place; then it wakes up."""
        process = self._one(self._workers())
        os.kill(process, signal.SIGSTOP)
        time.sleep(chaos_program.LEASES.worker + 1)
        self._wait_for_results_of_new_rows()
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)

    def _freeze_the_controller(self) -> None:
        """For long enough that its workers give it up, or not."""
        self._freeze(self._one(self._controllers()), self._chance.choice([SHORT, LONG]))

    def _freeze(self, process: int, seconds: float) -> None:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(process, signal.SIGCONT)

    def _kill_the_program(self) -> None:
        self._program.end(signal.SIGKILL)
        self._program = self._start_program()

    def _kill_a_raylet(self) -> None:
        """The node goes with it, and joins again."""
        machine = self._chance.choice(self._network.machines[1:])
        self._kill(self._one(_raylets(machine)))
        self._rejoin(machine)

    def _freeze_a_raylet(self) -> None:
        """For long enough that its node is taken for dead, or not."""
        machine = self._chance.choice(self._network.machines[1:])
        self._freeze(self._one(_raylets(machine)), self._chance.choice([SHORT, RAYLET_LONG]))

    def _kill_the_gcs(self) -> None:
        """Another one goes on from what is in Redis, at the same place."""
        head = self._network.machines[0]
        found = [process for process, command in head.processes().items() if "/gcs/gcs_server" in command]
        process = self._one(found)
        words = Path(f"/proc/{process}/cmdline").read_text().split("\0")[:-1]
        given = (word.partition("=") for word in Path(f"/proc/{process}/environ").read_text().split("\0") if word)
        settings = {name: value for name, _, value in given}
        self._kill(process)
        time.sleep(self._chance.choice([0.5, SHORT]))
        self._restarts += 1
        head.start(*words, output=self._folder / f"gcs-{self._restarts}", settings=settings)

    def _cut_a_link(self) -> None:
        """For long enough that its node is taken for dead, or not."""
        machine = self._chance.choice(self._network.machines[1:])
        machine.cut_off()
        time.sleep(self._chance.choice([SHORT, LONG]))
        machine.reconnect()

    def _rejoin_those_without_a_raylet(self) -> None:
        """A raylet that learns that its node is taken for dead ends, some time after it is back."""
        for machine in self._network.machines[1:]:
            if not _raylets(machine):
                self._rejoin(machine)

    def _rejoin(self, machine: Machine) -> None:
        """Start the node of a machine again, when nothing of it runs any more."""
        for process, command in machine.processes().items():
            if "ray" in command:
                self._kill(process)
        started = machine.start(
            RAY, "start", f"--address={address_of(self._network.machines[0])}", f"--node-ip-address={machine.address}",
            *SMALL, *QUIET, output=self._folder / f"rejoin-{machine.name}", settings=self._settings(machine),
        )  # fmt: skip
        assert started.wait(START_SECONDS) == 0, started.output


def _raylets(machine: Machine) -> list[int]:
    return [process for process, command in machine.processes().items() if "/raylet/raylet" in command]


@contextmanager
def chaos(seed: int = 0) -> Iterator[Chaos]:
    """Make a cluster with a join on it."""
    with tempfile.TemporaryDirectory() as folder, Network(MACHINES) as network:
        yield Chaos(network, Path(folder), seed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--faults", type=int, help="stop after so many")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if reason := refusal():
        print(reason, file=sys.stderr)
        return 1
    with chaos(given.seed) as made:
        made.run(given.minutes, given.faults)
        results = made.conclude()
    for name, pauses in made.pauses.items():
        print(f"{name:<18} {made.faults[name]:>4}, median {statistics.median(pauses):.1f} s to the next result")
    print(f"{sum(made.faults.values())} faults, {results:,} results: lost 0, duplicated 0, misordered 0")
    return 0


if __name__ == "__main__":
    sys.exit(main())
