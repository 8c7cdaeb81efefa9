"""Machines for tests: Linux namespaces with a network of their own, joined by a switch.

A `Network` is one set of namespaces (network, processes, mounts) that holds a bridge. Each `Machine` is a set inside
it, with one address on the bridge, process numbers of its own, and a private /tmp/ray. Programs in it see no other
machine's processes or sockets, as Ray expects of a node.

Every set lives as long as its first process, which reads a pipe that this process holds. When the pipe closes, also by
SIGKILL of this process, the kernel ends all processes of the set and removes its interfaces. Nothing has to be cleaned
up by a later run.

Root is not needed where the kernel lets users make namespaces of their own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType

import pytest

from indexes.kernels.cache_directory import VARIABLE, cache_directory
from tests.docs.code_blocks import ROOT

PREFIX = "10.77.0."
PATIENCE_SECONDS = 60
UNSHARE = ["unshare", "--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
AS_ROOT = ["--user", "--map-root-user"]
TOOLS_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
"""iproute2 lives in sbin, which an ordinary user's PATH may lack."""

NOT_INHERITED = ("RAY_", "http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
"""A program on a machine gets no setting of Ray and no proxy from the shell that runs the tests."""

RAYS_OWN = ("ray::IDLE", "ray::DashboardAgent", "ray::RuntimeEnvAgent")
"""Processes of a node that wait for work or serve Ray itself."""


@cache
def refusal() -> str | None:
    """Why namespaces cannot be made here, or None if they can."""
    try:
        made = subprocess.run(
            [*UNSHARE, *_user(), "sh", "-c", "ip link add br0 type bridge && mount -t tmpfs none /mnt"],
            env={**os.environ, "PATH": TOOLS_PATH},
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        return f"{error.filename} is missing: make system-deps"
    if made.returncode == 0:
        return None
    return f"this machine permits no namespaces ({made.stderr.strip()}): run as root, or allow user namespaces"


class NamespaceSet:
    """A set of namespaces and the process that keeps it: `first` is that process's number on this machine."""

    def __init__(self, command: Sequence[str]) -> None:
        self._keeper = subprocess.Popen(
            [*command, "sh", "-c", "echo made; exec cat"],
            env={**os.environ, "PATH": TOOLS_PATH},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._keeper.stdout is not None
        assert self._keeper.stdout.readline() == b"made\n", "the namespaces were not made"
        self.first = _last_descendant(self._keeper.pid)
        self._programs: list[Program] = []

    def enter(self, command: Sequence[str]) -> list[str]:
        """The command line that runs a command in these namespaces."""
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", "--target", str(self.first), *user, "--net", "--pid", "--mount", "--", *command]

    def run(self, *command: str) -> str:
        """Run a command in these namespaces and return what it prints."""
        finished = subprocess.run(
            self.enter(command),
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
        assert finished.returncode == 0, f"{' '.join(command)}: {finished.stdout}{finished.stderr}"
        return finished.stdout

    def start(self, *command: str | Path, output: Path, settings: Mapping[str, str] | None = None) -> Program:
        """Start a program in these namespaces; "python" is the Python that runs the tests."""
        words = [sys.executable if word == "python" else str(word) for word in command]
        program = Program(self.enter(words), settings or {}, output)
        self._programs.append(program)
        return program

    def close(self) -> None:
        """End all processes of these namespaces."""
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.close()
        self._keeper.stdout.close()
        self._keeper.wait(timeout=PATIENCE_SECONDS)
        for program in self._programs:
            program.end()


class Program:
    """A program that runs on a machine. Its output goes to a file."""

    def __init__(self, command: list[str], settings: Mapping[str, str], output: Path) -> None:
        self._output = output
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                command, env=environment(settings), stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
            )

    @property
    def output(self) -> str:
        """All that it has printed so far."""
        return self._output.read_text(errors="replace")

    @property
    def ended(self) -> bool:
        """Whether it runs no more."""
        return self._process.poll() is not None

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait for its end; the exit status."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the program has not ended in {seconds} s; it printed:\n{self.output}")

    def wait_for(self, text: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until it has printed a text."""
        deadline = time.monotonic() + seconds
        while text not in self.output:
            if self._process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the program has not printed {text!r}; it printed:\n{self.output}")
            time.sleep(0.05)

    def end(self, number: int = signal.SIGKILL) -> None:
        """End it with a signal, by default one that it cannot notice, and wait until it has ended."""
        if self._process.poll() is None:
            os.kill(_last_descendant(self._process.pid), number)
        self.wait()


class Machine(NamespaceSet):
    """One machine of a network."""

    def __init__(self, network: Network, number: int) -> None:
        super().__init__(network.enter(UNSHARE))
        self.address = f"{PREFIX}{number}"
        self.name = f"machine-{number}"
        self._network = network
        self._port = f"port{number}"
        network.run("ip", "link", "add", self._port, "type", "veth", "peer", "name", "eth0", "netns", self._inside())
        network.run("ip", "link", "set", self._port, "master", "br0", "up")
        self.run(
            "sh", "-ec",
            f"ip link set lo up; ip address add {self.address}/24 dev eth0; ip link set eth0 up;"
            f"ip route add default via {PREFIX}254; hostname {self.name} 2>/dev/null || true;"
            f"mkdir -p /tmp/ray; mount -t tmpfs none /tmp/ray",
        )  # fmt: skip

    def cut_off(self) -> None:
        """Pull the cable: from now on no packet reaches this machine or leaves it."""
        self._network.run("ip", "link", "set", self._port, "down")

    def reconnect(self) -> None:
        """Put the cable back."""
        self._network.run("ip", "link", "set", self._port, "up")

    def processes(self) -> dict[int, str]:
        """Command lines of its running processes, by their numbers on the machine that runs the tests."""
        return processes_in(process_namespace(self.first))

    def actors(self) -> dict[int, str]:
        """Its processes that are Ray actors or run a Ray task, by number; workers that wait for work are not."""
        return {
            number: command
            for number, command in self.processes().items()
            if command.startswith("ray::") and not command.startswith(RAYS_OWN)
        }

    def _inside(self) -> str:
        """The number of the first process as the network's namespaces see it: `ip` runs there."""
        status = Path(f"/proc/{self.first}/status").read_text()
        numbers = next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[1:]
        return numbers[-2]


class Network(NamespaceSet):
    """A switch, and the machines on it: `with Network(3) as network`."""

    def __init__(self, count: int) -> None:
        super().__init__([*UNSHARE, *_user()])
        self.machines: list[Machine] = []
        self.run("sh", "-ec", "ip link add br0 type bridge; ip link set br0 up")
        for number in range(1, count + 1):
            self.machines.append(Machine(self, number))

    def __enter__(self) -> Network:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for machine in self.machines:
            machine.close()
        super().close()


def process_namespace(process: int) -> str:
    """The process namespace that a process lives in."""
    return os.readlink(f"/proc/{process}/ns/pid")


def processes_in(namespace: str) -> dict[int, str]:
    """Command lines of the running processes in a process namespace, by their numbers outside of it."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "ns/pid") == namespace:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                if command:  # an ended process that its parent has not asked about has none
                    found[int(entry.name)] = command
        except OSError:  # ended just now, or another user's
            continue
    return found


def environment(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a program on a machine: the tests' own, without what would disturb it, and `settings`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(NOT_INHERITED)}
    own = {"PATH": TOOLS_PATH, "HOME": "/tmp/ray", "PYTHONPATH": str(ROOT)}
    shown = {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
    # Its home is new, so every machine would compile every kernel again.
    compiled = cache_directory()
    warm = {} if compiled is None else {VARIABLE: str(compiled)}
    return {**kept, **own, **shown, **warm, **(settings or {})}


def _user() -> list[str]:
    return [] if os.geteuid() == 0 else AS_ROOT


def _last_descendant(process: int) -> int:
    """The process at the end of a chain of `nsenter` and `unshare`."""
    while True:
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        command = Path(f"/proc/{process}/comm").read_text().strip()
        if command not in ("unshare", "nsenter"):
            return process
        if children:
            process = int(children[0])
