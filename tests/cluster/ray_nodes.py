"""A Ray cluster made with `ray start`, one node per machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.cluster.namespaces import Machine

RAY = str(Path(sys.executable).with_name("ray"))
PORT = 6379
START_SECONDS = 180
"""A node starts in a few seconds, on a busy machine in many."""

SMALL = ["--num-cpus=2", f"--object-store-memory={80 * 1024 * 1024}", "--disable-usage-stats"]
QUIET = ["--include-log-monitor=false"]


def address_of(head: Machine) -> str:
    """Where the head of a cluster listens."""
    return f"{head.address}:{PORT}"


def start_nodes(
    machines: Sequence[Machine], folder: Path, settings: Callable[[Machine], Mapping[str, str]] = lambda _: {}
) -> None:
    """Start a node on each machine, the head on the first, all at once: the others wait for the head."""
    head, *others = machines
    commands = {
        head: ["--head", f"--port={PORT}", "--include-dashboard=false"],
        **{machine: [f"--address={address_of(head)}"] for machine in others},
    }
    starting = [
        machine.start(
            RAY, "start", *options, f"--node-ip-address={machine.address}", *SMALL, *QUIET,
            output=folder / f"ray-start-{machine.name}", settings=settings(machine),
        )
        for machine, options in commands.items()
    ]  # fmt: skip
    for program in starting:
        assert program.wait(START_SECONDS) == 0, program.output
