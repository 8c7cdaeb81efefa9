"""What tests on machines wait for and look at: a condition, and the packets between the machines."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.cluster.namespaces import PATIENCE_SECONDS, Network


class Recording:
    """All packets that cross a network from now on."""

    def __init__(self, network: Network, folder: Path) -> None:
        program = Path(__file__).with_name("capture.py")
        self._packets = folder / "packets"
        self._program = network.start("python", program, self._packets, output=folder / "capture")
        self._program.wait_for("capturing")

    def end(self) -> bytes:
        """Stop, and return the packets one after the other. A text that was cut between two packets is not found."""
        self._program.end(signal.SIGTERM)
        assert "missed 0" in self._program.output
        return self._packets.read_bytes()


def wait_until_gone(left: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until nothing is left; fail with what is left if that takes too long."""
    deadline = time.monotonic() + seconds
    while found := left():
        assert time.monotonic() < deadline, f"after {seconds} s there still is: {found}"
        time.sleep(0.2)
