"""The simulated disk loses exactly what a real one may lose."""

from __future__ import annotations

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.simulated.disk import CrashedError, SimulatedDisk

SEEDS = range(40)


def written(seed: int) -> SimulatedDisk:
    """One file, whose content and entry are safe."""
    disk = SimulatedDisk(seed, block=4)
    disk.create("a")
    disk.write("a", 0, [b"sa", b"fe"])
    disk.sync("a")
    disk.sync_directory()
    return disk


def after_crash(disk: SimulatedDisk, name: str = "a") -> bytes | None:
    disk.crash()
    return disk.read(name).to_pybytes() if name in disk.names() else None


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_synced_survives(seed: int) -> None:
    assert after_crash(written(seed)) == b"safe"


def test_any_part_of_what_is_not_synced_is_lost() -> None:
    found = set()
    for seed in SEEDS:
        disk = written(seed)
        disk.write("a", 4, [b"11112222", b"33"])
        assert disk.read("a").to_pybytes() == b"safe1111222233"
        found.add(after_crash(disk))
    assert found == {
        b"safe", b"safe1111", b"safe11112222", b"safe1111222233",
        b"safe\0\0\0\x002222", b"safe\0\0\0\x00222233", b"safe\0\0\0\0\0\0\0\x0033", b"safe1111\0\0\0\x0033",
    }  # fmt: skip


def test_a_file_without_a_synced_entry_may_vanish_and_a_deleted_one_return() -> None:
    vanished, returned = set(), set()
    for seed in SEEDS:
        disk = written(seed)
        disk.create("b")
        disk.write("b", 0, [b"content"])
        disk.sync("b")
        disk.delete("a")
        vanished.add(after_crash(disk, "b"))
        returned.add(disk.read("a").to_pybytes() if "a" in disk.names() else None)
    assert vanished == {None, b"content"}
    assert returned == {None, b"safe"}


def test_a_sync_can_be_lost_without_a_word() -> None:
    disk = written(1)
    disk.lose_syncs = 1.0
    disk.write("a", 0, [b"lost" * 8])
    disk.sync("a")
    assert after_crash(disk) != b"lost" * 8


def test_a_failed_sync_forgets_what_it_should_have_written() -> None:
    found = set()
    for seed in SEEDS:
        disk = written(seed)
        disk.write("a", 0, [b"more"])
        disk.fail = 1.0
        with pytest.raises(OSError, match="input/output"):
            disk.sync("a")
        disk.fail = 0.0
        found.add(bytes(disk._seen["a"].safe))
        assert disk._seen["a"].unsynced == []
    assert found == {b"safe", b"more"}


def test_a_full_disk_takes_what_fits() -> None:
    disk = written(1)
    disk.capacity = 10
    assert disk.free_bytes() == 6
    with pytest.raises(OSError, match="no space") as caught:
        disk.write("a", 4, [b"0123456789"])
    assert caught.value.errno == errno.ENOSPC
    assert disk.read("a").to_pybytes() == b"safe012345"
    disk.write("a", 0, [b"SAFE"])


def test_a_flipped_bit_stays() -> None:
    disk = written(1)
    at = disk.flip("a")
    found = after_crash(disk)
    assert found is not None
    assert [bin(one ^ other).count("1") for one, other in zip(found, b"safe", strict=True)] == [
        int(place == at) for place in range(4)
    ]


def test_a_file_is_made_once() -> None:
    with pytest.raises(FileExistsError):
        written(1).create("a")


@given(st.integers(0, 2**32), st.integers(0, 12))
def test_the_same_seed_gives_the_same_disk(seed: int, crash_in: int) -> None:
    def content() -> dict[str, bytes]:
        disk = SimulatedDisk(seed, block=4)
        disk.crash_in, disk.lose_syncs = crash_in, 0.3
        try:
            for name in "abc":
                disk.create(name)
                disk.write(name, 0, [name.encode() * 40])
                disk.sync(name)
                disk.sync_directory()
        except CrashedError:
            with pytest.raises(CrashedError):
                disk.names()
        disk.crash()
        return {name: disk.read(name).to_pybytes() for name in disk.names()}

    assert content() == content()
