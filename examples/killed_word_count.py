"""Word count that is killed in the middle, and goes on as if nothing had happened.

    python -m examples.killed_word_count            # a program is killed; another one goes on from its state
    python -m examples.killed_word_count --ray      # a worker with counts is killed; the topology goes on by itself

The topology is that of `examples/word_count.py`. It is launched with a state: every line that `send` has taken is in a
log, and the counts are saved now and then by `snapshot`. So after a kill no line is missing, and none is counted twice.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter

import pyarrow as pa

import interlace as il
from examples.word_count import LINES, TEXT, word_count

COPIES = 2_000
LINES_SENT = 100


def text() -> pa.Table:
    """Return the lines to count."""
    return pa.table({"line": TEXT.splitlines() * COPIES}, schema=LINES)


def send(running: il.RunningTopology, upto: int) -> None:
    """Send the lines before number `upto`, from the first that the topology does not have."""
    for start in range(running.next_offset("lines", "text"), upto, LINES_SENT):
        rows = text().slice(start, min(LINES_SENT, upto - start))
        running.send("lines", rows, source="text", offset=start)


def totals(running: il.RunningTopology) -> Counter[str]:
    """Say that no more lines come, and read the counts."""
    running.finish()
    return Counter({row["word"]: row["count"] for rows in running.results() for row in rows.to_pylist()})


def count_until_killed(state: str) -> None:
    """Send half of the lines, and die."""
    running = il.LocalRuntime(state=state).launch(word_count())
    send(running, text().num_rows // 2)
    os.kill(os.getpid(), signal.SIGKILL)


def count_in_two_programs(state: str) -> Counter[str]:
    """Let a program of its own count half of the lines and be killed; count the rest here."""
    killed = subprocess.run([sys.executable, "-m", "examples.killed_word_count", "--until-killed", state], check=False)
    print(f"a program was killed by signal {-killed.returncode}")
    with il.LocalRuntime(state=state).launch(word_count()) as running:
        print(f"{running.next_offset('lines', 'text'):,} of {text().num_rows:,} lines were in its state")
        send(running, text().num_rows)
        return totals(running)


def count_on_ray(state: str) -> Counter[str]:
    """Count on Ray, and kill a worker that counts in the middle."""
    with il.RayRuntime(state=state).launch(word_count()) as running:
        send(running, text().num_rows // 2)
        workers = running.status().workers
        pid = next(worker.pid for worker in workers if ("count", 0) in worker.tasks)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        send(running, text().num_rows)
        found = totals(running)
        print(f"a worker was killed; the topology started again {running.status().recoveries} time(s)")
        return found


def main() -> None:
    """Run, and compare with a count in one go."""
    parser = argparse.ArgumentParser(description="Count words, with a kill in the middle.")
    parser.add_argument("--ray", action="store_true", help="kill a worker on Ray instead of a whole program")
    parser.add_argument("--until-killed", metavar="STATE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.until_killed:
        count_until_killed(arguments.until_killed)
    with tempfile.TemporaryDirectory() as state:
        found = (count_on_ray if arguments.ray else count_in_two_programs)(state)
    with il.LocalRuntime().launch(word_count()) as running:
        send(running, text().num_rows)
        undisturbed = totals(running)
    print(f"{sum(found.values()):,} words, {sum(undisturbed.values()):,} without a kill; same: {found == undisturbed}")


if __name__ == "__main__":
    main()
