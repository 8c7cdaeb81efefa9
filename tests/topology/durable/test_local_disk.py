"""The real disk keeps the promises of the port: pieces of any number and size, synced for real."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from topology.durable.disk_store import DiskStore
from topology.durable.local_disk import LocalDisk

ROWS = pa.py_buffer(bytes(range(256)) * 8)


def test_more_pieces_than_the_system_takes_at_once_are_written(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    disk.create("a")
    pieces = [bytes([number % 251]) * (number % 7) for number in range(3_000)]
    disk.write("a", 5, pieces)
    assert disk.read("a").to_pybytes() == bytes(5) + b"".join(pieces)
    disk.close()


def test_a_write_that_the_system_cuts_short_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def short(file: int, pieces: Sequence[bytes], at: int) -> int:
        return os.pwrite(file, b"".join(pieces)[:5], at)

    monkeypatch.setattr(os, "pwritev", short)
    disk = LocalDisk(tmp_path)
    disk.create("a")
    disk.write("a", 0, [b"abc", ROWS, b"xyz"])
    assert disk.read("a").to_pybytes() == b"abc" + ROWS.to_pybytes() + b"xyz"
    disk.close()


def test_files_are_synced_before_their_directory_and_directories_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def noticed(file: int) -> None:
        synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{file}")))
        real(file)

    monkeypatch.setattr(os, "fsync", noticed)
    store = DiskStore(LocalDisk(tmp_path))
    store.write("segment-a", 0, 0, [b"first"])
    store.sync("segment-a")
    store.write("segment-a", 1, 5, [b"second"])
    store.sync("segment-a")
    store.mark("epoch-b")
    assert synced == ["segment-a", tmp_path.name, "segment-a", tmp_path.name]
    store.close()


def test_only_the_user_can_read_a_segment(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    disk.create("a")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    disk.close()


def test_files_are_made_once_deleted_twice_and_few_stay_open(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(20):
        disk.create(str(number))
        disk.write(str(number), 0, [b"x"])
    disk.write("0", 1, [b"y"])
    assert len(os.listdir("/proc/self/fd")) - before <= 4
    with pytest.raises(FileExistsError):
        disk.create("3")
    disk.delete("3")
    disk.delete("3")
    assert disk.names().count("3") == 0
    assert disk.read("0").to_pybytes() == b"xy"
    disk.close()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_full_device_says_so(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    disk = LocalDisk(tmp_path)
    with pytest.raises(OSError, match="No space") as caught:
        disk.write("full", 0, [b"x"])
    assert caught.value.errno == errno.ENOSPC
    disk.close()
