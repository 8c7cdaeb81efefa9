"""Waiting until a topology whose inputs have ended has nothing left that somebody has to read."""

from __future__ import annotations

import math
import time

from topology import Handle

LOOK_SECONDS = 0.2


def wait_until_read(running: Handle, seconds: float = math.inf) -> bool:
    """Wait until all results have come and somebody has dealt with them; return whether that was so in time."""
    limit = time.monotonic() + seconds
    topology = running.topology
    sinks = [name for name in topology.sinks if not getattr(topology.node(name).component, "aside", False)]
    while time.monotonic() < limit:
        tasks = [task for sink in sinks for task in running.metrics().of(sink)]
        if tasks and all(task.own.get("ended") and not task.own.get("unread_rows") for task in tasks):
            return True
        time.sleep(min(LOOK_SECONDS, max(0.0, limit - time.monotonic())))
    return False
