"""Topologies of a user's own bolts after crashes: every result that was seen once is the same when it comes again.

The bolts are sensitive to the order of everything (`order_sensitive.py`).
"""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.topology.steps.machine import ROWS, SOURCES, Machine, Row
from tests.topology.steps.order_sensitive import diamond
from topology.durable.disk_store import DiskStore


def keys(source: str, first: int, count: int) -> pa.RecordBatch:
    return pa.record_batch({"key": [number * 7 % 5 for number in range(first, first + count)]})


def timed_keys(source: str, first: int, count: int) -> pa.RecordBatch:
    times = pa.array([number // 3 for number in range(first, first + count)], pa.int64())
    return keys(source, first, count).append_column("time", times)


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_results_are_the_same_after_any_crash(seed: int, timed: bool) -> None:
    machine = Machine(seed, diamond(event_time="time" if timed else None), timed_keys if timed else keys)
    machine.run(crashes=25, rate=0.003)
    judge(machine.got["results"])


@pytest.mark.parametrize("seed", range(20, 23))
def test_ticks_of_the_clock_come_again_at_the_same_places(seed: int) -> None:
    machine = Machine(seed, diamond(ticks=True), keys)
    machine.run(crashes=20, rate=0.003)
    judge(machine.got["results"])
    assert machine.later_starts


def judge(got: dict[int, Row]) -> None:
    """Nothing is missing, and each row has been counted once on each of its ways through the diamond."""
    assert sorted(got) == list(range(len(got)))
    totals = [number for key, number, _ in (got[n] for n in sorted(got)) if key == -1]
    sent = ROWS * len(SOURCES)
    from_a = 2 * ROWS
    # Through left, through right (each row of a to one task by key, and to both tasks by all_grouping), and b itself;
    # each of the five tasks before it adds a row at its end.
    assert totals[-1] == sent + (sent + 2 * from_a) + ROWS + 3 + 2


def test_snapshots_shorten_what_is_repeated() -> None:
    later = 0
    for seed in range(100, 104):
        machine = Machine(seed, diamond(), keys)
        machine.segment_bytes = 400
        machine.run(crashes=25, rate=0.003)
        later += machine.later_starts
    assert later > 10


def test_without_snapshots_the_log_is_kept_whole_and_repeated() -> None:
    machine = Machine(7, diamond(with_snapshots=False), keys)
    machine.segment_bytes = 400
    machine.run(crashes=15, rate=0.003)
    judge(machine.got["results"])
    assert machine.later_starts == 0
    assert not DiskStore(machine.disks[1]).segments()
