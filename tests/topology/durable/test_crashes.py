"""A machine may crash during any call, again and again, with a disk that is full, fails or ages."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topology.durable.stores import numbered, numbers, started
from tests.topology.durable.writers import Actor, History
from topology.durable.disk_store import DiskStore
from topology.durable.record import Position
from topology.durable.take_over import take_over
from topology.graph.errors import DamagedLogError, StoreError
from topology.simulated.disk import CrashedError, SimulatedDisk

SCRIPT = "cfcrcrtcf"


@pytest.mark.parametrize("seed", range(3))
def test_a_crash_during_any_call_loses_nothing(seed: int) -> None:
    crashed = True
    calls = 0
    while crashed:
        disk = SimulatedDisk(seed + 1000 * calls)
        history = History(lambda disk=disk: DiskStore(disk))  # type: ignore[misc]
        disk.crash_in = calls
        crashed = False
        for script in (SCRIPT, "crtc"):
            try:
                for _ in history.writer(script):
                    pass
            except CrashedError:
                crashed = True
                disk.crash()
        disk.crash()
        history.check()
        calls += 1
    assert calls > 60


@settings(max_examples=400)
@given(seed=st.integers(0, 2**32))
def test_crashes_zombies_full_and_failing_disks_lose_nothing(seed: int) -> None:
    choice = Random(seed)
    disk = SimulatedDisk(seed)
    disk.fail = choice.choice([0.0, 0.02, 0.1])
    history = History(lambda: DiskStore(disk))
    actors: list[Actor] = []
    for _ in range(150):
        drawn = choice.random()
        if not actors or drawn < 0.03:
            actors.append(history.writer("".join(choice.choices("ccfrt", k=choice.randrange(1, 10)))))
        elif drawn < 0.05:
            disk.crash_in = choice.randrange(10)
        elif drawn < 0.07:
            disk.capacity = disk.used_bytes + choice.randrange(600)
        elif drawn < 0.12:
            disk.capacity = None
        actor = actors[-1] if choice.random() < 0.7 else choice.choice(actors)
        try:
            next(actor)
        except CrashedError:
            disk.crash()
            actors.clear()
        except (StopIteration, StoreError):
            actors.remove(actor)
    disk.fail, disk.capacity = 0.0, None
    disk.crash()
    history.check()


def test_a_full_disk_is_a_state_and_goes_on_when_there_is_room() -> None:
    disk = SimulatedDisk()
    log = started(DiskStore(disk))
    log.append(numbered(1))
    log.commit()
    disk.capacity = disk.used_bytes + 100
    log.append(numbered(2, rows=50))
    assert log.commit() == Position(1, 1)
    assert log.disk_full
    assert not log.has_room
    log.append(numbered(3))
    assert log.commit() == Position(1, 1)
    disk.crash()
    assert numbers(log) == [1]
    disk.capacity = None
    assert log.commit() == Position(1, 3)
    assert not bool(log.disk_full)
    assert bool(log.has_room)
    disk.crash()
    assert numbers(take_over(DiskStore(disk))) == [1, 2, 3]


def test_a_disk_that_is_nearly_full_has_no_room_until_others_make_some() -> None:
    disk = SimulatedDisk()
    disk.capacity = 5_000
    log = take_over(DiskStore(disk)).start(numbered(0), reserve=4_000)
    log.commit()
    had_room = log.has_room
    log.append(numbered(1, rows=300))
    assert log.commit() == Position(1, 1)
    assert [had_room, log.has_room] == [True, False]
    disk.capacity = 10_000
    assert log.has_room


def test_a_full_disk_can_be_trimmed() -> None:
    disk = SimulatedDisk()
    log = started(DiskStore(disk))
    log.append(numbered(1, rows=500))
    log.rotate(numbered(0))
    log.commit()
    disk.capacity = disk.used_bytes
    log.append(numbered(2, rows=100))
    log.commit()
    assert log.disk_full
    log.trim(2)
    assert log.commit() == Position(2, 1)
    assert numbers(take_over(DiskStore(disk))) == [2]


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), lose=st.floats(0.1, 1.0), scripts=st.lists(st.text("cfr", max_size=6), max_size=4))
def test_a_disk_that_lies_about_syncs_never_gives_wrong_records(seed: int, lose: float, scripts: list[str]) -> None:
    disk = SimulatedDisk(seed)
    disk.lose_syncs = lose
    history = History(lambda: DiskStore(disk))
    try:
        for script in scripts:
            for _ in history.writer(script):
                pass
            disk.crash()
        found = history.final()
    except DamagedLogError:
        return
    assert found == sorted(set(found))
    assert set(found) <= {number for life in history.lives for number in life.appended}


@settings(max_examples=300)
@given(seed=st.integers(0, 2**32), script=st.text("cfr", min_size=1, max_size=8), place=st.floats(0, 1))
def test_a_flipped_bit_is_noticed(seed: int, script: str, place: float) -> None:
    disk = SimulatedDisk(seed)
    history = History(lambda: DiskStore(disk))
    for _ in history.writer(script):
        pass
    life = history.lives[0]
    segments = sorted(name for name in disk.names() if name.startswith("segment-"))
    chosen = segments[int(place * len(segments)) % len(segments)]
    at = disk.flip(chosen)
    last = life.acknowledged[-5:] if script[-1] == "f" else life.acknowledged[-1:]
    try:
        found = history.final()
    except DamagedLogError:
        return
    # Only the last group before the end of the log may be taken for a torn one.
    assert chosen == segments[-1], f"byte {at} of {chosen} was changed"
    assert found == life.acknowledged[: -len(last)]


def test_a_commit_costs_one_write_one_sync_and_one_listing() -> None:
    disk = SimulatedDisk()
    log = started(DiskStore(disk))
    for number in range(3):
        calls = disk.calls
        log.append(numbered(number, rows=5))
        log.append(numbered(number))
        log.commit()
        assert disk.calls == calls + 3


def test_a_disk_that_fails_during_a_take_over_says_so() -> None:
    disk = SimulatedDisk()
    log = started(DiskStore(disk))
    log.append(numbered(1))
    log.commit()
    disk.fail = 1.0
    with pytest.raises(StoreError, match=r"cannot be taken over: .*input/output error"):
        take_over(DiskStore(disk))
    disk.fail = 0.0
    assert numbers(take_over(DiskStore(disk))) == [1]


def test_a_disk_that_fails_during_a_commit_says_so_and_can_be_tried_again() -> None:
    disk = SimulatedDisk()
    log = started(DiskStore(disk))
    log.append(numbered(1))
    disk.fail = 1.0
    with pytest.raises(StoreError, match=r"segment 1 of the log cannot be written: .*input/output error.*commit again"):
        log.commit()
    disk.fail = 0.0
    assert log.commit() == Position(1, 1)


def test_damage_names_file_and_place() -> None:
    disk = SimulatedDisk()
    log = started(DiskStore(disk))
    ends = []
    for number in range(3):
        log.append(numbered(number + 1))
        log.commit()
        ends.append(log.kept_bytes)
    segment = next(name for name in disk.names() if name.startswith("segment-"))
    disk.flip(segment, at=ends[1] - 30)
    with pytest.raises(
        DamagedLogError, match=rf"{segment} is damaged at byte {ends[0]:,} \(group 2\).*later groups follow"
    ):
        take_over(DiskStore(disk))


def test_a_missing_segment_is_damage_and_a_trimmed_one_is_not() -> None:
    disk = SimulatedDisk()
    log = started(DiskStore(disk))
    for number in range(4):
        log.append(numbered(number))
        log.rotate(numbered(-1))
        log.commit()
    log.trim(2)
    assert take_over(DiskStore(disk)).segments == [2, 3, 4, 5]
    disk.delete(next(name for name in disk.names() if name.startswith("segment-000000000003")))
    with pytest.raises(DamagedLogError, match=r"segment-000000000003-.* is missing from the store"):
        take_over(DiskStore(disk))


def test_a_mark_of_a_zombie_trims_nothing() -> None:
    store = DiskStore(SimulatedDisk())
    old = started(store)
    for number in (1, 2, 3):
        old.append(numbered(number))
        old.rotate(numbered(-1))
        old.commit()
    trimming = old.trim_steps(4)
    next(trimming)  # asleep before its mark
    new = started(store)
    with pytest.raises(Exception, match="taken the log over"):
        for _ in trimming:
            pass
    assert numbers(new) == numbers(take_over(store)) == [1, 2, 3]


def test_records_of_another_file_are_not_taken() -> None:
    disks = [SimulatedDisk(), SimulatedDisk()]
    for number, disk in enumerate(disks):
        log = started(DiskStore(disk))
        log.append(numbered(number))
        log.rotate(numbered(-1))
        log.commit()
    own, other = (next(name for name in disk.names() if "segment-000000000001" in name) for disk in disks)
    content = disks[1].read(other).to_pybytes()
    assert len(content) == disks[0].read(own).size
    disks[0].write(own, 0, [content])
    with pytest.raises(DamagedLogError, match=own):
        numbers(take_over(DiskStore(disks[0])))
