"""Two writers on one log, in every order of their steps: nothing acknowledged is lost, nothing of a zombie gets in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topology.durable.stores import objects_in_memory
from tests.topology.durable.writers import Actor, History, run_together, schedules, until
from topology.durable.disk_store import DiskStore
from topology.durable.store import Store
from topology.simulated.disk import SimulatedDisk

Place = Callable[[], tuple[Callable[[], Store], Callable[[], None]]]
"""Makes a place for a log: how a process opens it, and a crash of the machine."""


def on_disk() -> tuple[Callable[[], Store], Callable[[], None]]:
    disk = SimulatedDisk(seed=1)
    return lambda: DiskStore(disk), disk.crash


def on_objects() -> tuple[Callable[[], Store], Callable[[], None]]:
    store = objects_in_memory()
    return lambda: store, lambda: None


LISTED = 3
"""A successor that is so many steps ahead has looked which epochs there are, and has not claimed its own."""


def begun(history: History, script: str, prepared: str) -> Actor:
    """A writer that has begun, and has done what was to be prepared."""
    writer = history.writer(prepared + script)
    for _ in until(lambda: bool(history.lives) and len(history.lives[0].acknowledged) == len(prepared), writer):
        pass
    return writer


@pytest.mark.parametrize(
    ("place", "prepared", "script", "ahead"),
    [
        pytest.param(on_disk, "c", "c", 0, id="disk: commit"),
        pytest.param(on_disk, "", "cc", LISTED, id="disk: commit twice", marks=pytest.mark.thorough),
        pytest.param(on_disk, "c", "r", 0, id="disk: begin a segment", marks=pytest.mark.slow),
        pytest.param(on_disk, "crr", "t", LISTED, id="disk: trim", marks=pytest.mark.thorough),
        pytest.param(on_objects, "c", "c", 0, id="objects: commit"),
        pytest.param(on_objects, "c", "r", LISTED, id="objects: begin a segment", marks=pytest.mark.thorough),
        pytest.param(on_objects, "crr", "t", LISTED, id="objects: trim", marks=pytest.mark.thorough),
    ],
)
def test_a_writer_and_its_successor_in_every_order(place: Place, prepared: str, script: str, ahead: int) -> None:
    outcomes = set()

    def run(choose: Callable[[int], int]) -> None:
        make, crash = place()
        history = History(make)
        old = begun(history, script, prepared)
        new = history.writer("c")
        for _ in range(ahead):
            next(new)
        run_together([until(lambda: len(history.lives) == 2, new), old], choose)
        for _ in [] if choose(2) else old:  # it sleeps for ever, or wakes up
            pass
        for _ in new:  # after everything that the other one may still have written
            pass
        assert len(history.lives[1].acknowledged) == 1
        outcomes.add((len(history.lives[0].acknowledged), len(history.lives[1].read)))
        crash()
        history.check()

    count = sum(1 for _ in schedules(run))
    print(f"{count:,} orders")
    assert count > 500
    assert len(outcomes) > 1, "in some orders the writer is fenced, in others it is not"


@settings(max_examples=300)
@given(st.integers(0, 2**32), st.sampled_from([on_disk, on_objects]))
def test_several_writers_in_any_order(seed: int, place: Place) -> None:
    make, crash = place()
    history = History(make)
    history.race(seed)
    assert history.lives, "one of them comes through"
    crash()
    history.check()
