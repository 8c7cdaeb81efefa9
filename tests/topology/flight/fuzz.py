"""Sends mutated streams to a served join, many per connection: `python -m tests.topology.flight.fuzz --streams 200000`.

Each stream is made from its number, so any of them can be made again. The file given with `--state` holds how far the
run has come; the same command goes on from there. The run stops at the first crash, wrong result, row taken that had to
be refused, or memory beyond the bound, and names the stream.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any

from tests.topology.flight.hostile_calls import Outcome, Victim
from tests.topology.flight.hostile_cases import Case, mutated

IN_FLIGHT = 16
PER_CONNECTION = 1000
"""After so many streams the join must give exact results, and a new connection is made."""

MEMORY = 1024 * 1024 * 1024
"""The most memory that the server may use, the program itself included: a few messages of 32 MB, several times each."""


def check(number: int, case: Case, outcome: Outcome, victim: Victim) -> None:
    """Raise an error if a stream did harm."""
    if not victim.alive() or outcome.code == "UNAVAILABLE":
        raise SystemExit(f"stream {number} ended the server, or one of the {IN_FLIGHT} before it: {outcome}")
    if case.must_refuse and outcome.rows:
        raise SystemExit(f"stream {number} was taken, and must be refused: {outcome}")
    if outcome.kind == "InterlaceError":
        raise SystemExit(f"stream {number} had an unexpected error: {outcome}")


def send(numbers: range, victim: Victim, counts: Counter[str]) -> None:
    """Send streams over one connection, some at the same time."""
    waiting: deque[tuple[int, Case, Any]] = deque()
    for number in numbers:
        case = mutated(number)
        waiting.append((number, case, victim.begin_put(case.messages)))
        while len(waiting) == IN_FLIGHT or (waiting and number == numbers[-1]):
            earlier, sent, call = waiting.popleft()
            outcome = victim.outcome(call)
            check(earlier, sent, outcome, victim)
            counts["taken" if outcome.rows else outcome.kind or outcome.code] += 1


def fuzz(first: int, end: int, state: Path | None, counts: Counter[str]) -> None:
    """Send the streams from `first` up to `end`."""
    victim = Victim()
    started = time.monotonic()
    try:
        victim.works()
        for begin in range(first, end, PER_CONNECTION):
            done = min(begin + PER_CONNECTION, end)
            send(range(begin, done), victim, counts)
            victim.works()
            peak = victim.peak_bytes()
            if peak > MEMORY:
                raise SystemExit(f"the server has used {peak:,} bytes before stream {done}")
            if state is not None:
                state.write_text(json.dumps({"done": done, "counts": counts}))
            rate = (done - first) / (time.monotonic() - started)
            print(f"{done:,} streams, {rate:,.0f} a second, peak {peak / 2**20:,.0f} MB, {dict(counts)}", flush=True)
            victim.channel.close()
            victim.channel = victim.connect()
    finally:
        victim.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=200_000)
    parser.add_argument("--state", type=Path)
    arguments = parser.parse_args()
    done: dict[str, Any] = {"done": 0, "counts": {}}
    if arguments.state is not None and arguments.state.exists():
        done = json.loads(arguments.state.read_text())
    fuzz(done["done"], arguments.streams, arguments.state, Counter(done["counts"]))


if __name__ == "__main__":
    main()
