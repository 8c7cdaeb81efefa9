"""A disk that fails as disks do, and in the same way each time for the same seed.

It keeps two versions of everything: what running processes see, and what a crash leaves. `sync` and `sync_directory`
bring the second up to the first. A crash keeps any part of what was not synced: each block of each write, and each
entry of the directory, survives or not by the toss of a coin. So a torn write may miss its middle, a file may come back
with its old length or with zeros, and a new file may be gone although its content was synced.

    disk = SimulatedDisk(seed=7)
    disk.create("a"); disk.write("a", 0, [b"hello"]); disk.sync("a")
    disk.crash()          # "a" may be gone: its directory was not synced
"""

from __future__ import annotations

import copy
import errno
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from topology.durable.disk import Piece


class CrashedError(Exception):
    """The machine has crashed: every process on it ends where it is. `crash` starts it again."""


@dataclass
class _File:
    """A file's content as processes see it and as a crash leaves it, and the stretches where the two may differ."""

    seen: bytearray = field(default_factory=bytearray)
    safe: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, int]] = field(default_factory=list)


class SimulatedDisk:
    """One directory. The faults are attributes, and can be set at any time.

    capacity: bytes that fit; a write beyond them is cut short and raises "no space left on device". None: no limit.
    lose_syncs: the probability that a sync of a file claims success and does nothing.
    fail: the probability that a write or a sync fails with an input/output error.
    crash_in: the number of calls after which one raises `CrashedError`, having done its work in part. None: never.
    block: the bytes that a write keeps or loses together.
    torn: the writes of which a crash has kept a part.
    """

    def __init__(self, seed: int = 0, block: int = 64) -> None:
        self.capacity: int | None = None
        self.lose_syncs = 0.0
        self.fail = 0.0
        self.crash_in: int | None = None
        self.block = block
        self.calls = 0
        self.torn = 0
        self._random = random.Random(seed)
        self._seen: dict[str, _File] = {}
        self._safe: dict[str, _File] = {}
        self._down = False

    @property
    def used_bytes(self) -> int:
        """The size of all files."""
        return self._used("", 0)

    def size(self, name: str) -> int:
        """The bytes of a file."""
        return len(self._seen[name].seen)

    def copy(self) -> SimulatedDisk:
        """Return a disk with the same content, without faults."""
        made = SimulatedDisk(block=self.block)
        made._random.setstate(self._random.getstate())
        files = {id(file): copy.deepcopy(file) for of_disk in (self._seen, self._safe) for file in of_disk.values()}
        made._seen = {name: files[id(file)] for name, file in self._seen.items()}
        made._safe = {name: files[id(file)] for name, file in self._safe.items()}
        return made

    def unsync(self, name: str, nbytes: int) -> None:
        """Make the last bytes of a file such that a crash may lose them, although they were synced."""
        file = self._seen[name]
        start = max(0, len(file.seen) - nbytes)
        del file.safe[start:]
        file.unsynced = [(start, len(file.seen))]

    def crash(self) -> None:
        """Lose what was not synced, or some of it, and start again."""
        for name in sorted(self._seen.keys() ^ self._safe.keys()):
            if self._toss():
                if name in self._seen:
                    self._safe[name] = self._seen[name]
                else:
                    del self._safe[name]
        for name in sorted(self._safe):
            file = self._safe[name]
            for start, stop in file.unsynced:
                self._keep_some(file, start, stop)
                self.torn += file.safe[start:stop] not in (b"", file.seen[start:stop])
            self._safe[name] = _File(bytearray(file.safe), file.safe)
        self._seen = dict(self._safe)
        self._down = False
        self.crash_in = None

    def flip(self, name: str, at: int | None = None) -> int:
        """Flip one bit of a file, where a medium ages; return the place of its byte."""
        file = self._seen[name]
        at = self._random.randrange(len(file.seen)) if at is None else at
        bit = 1 << self._random.randrange(8)
        file.seen[at] ^= bit
        if at < len(file.safe):
            file.safe[at] ^= bit
        return at

    def create(self, name: str) -> None:
        crashing = self._call()
        if name in self._seen:
            raise FileExistsError(errno.EEXIST, "the file exists", name)
        self._seen[name] = _File()
        self._end(crashing)

    def write(self, name: str, at: int, pieces: Sequence[Piece]) -> None:
        crashing = self._call()
        content = b"".join(pieces)
        room = len(content) if self.capacity is None else max(0, self.capacity - self._used(name, at))
        failing = self._random.random() < self.fail
        if failing or crashing:
            room = min(room, self._random.randrange(len(content) + 1))
        taken = content[:room]
        file = self._file(name)
        if len(file.seen) < at:
            file.seen.extend(bytes(at - len(file.seen)))
        file.seen[at : at + len(taken)] = taken
        file.unsynced.append((at, at + len(taken)))
        self._end(crashing)
        if failing:
            raise OSError(errno.EIO, "input/output error", name)
        if room < len(content):
            raise OSError(errno.ENOSPC, "no space left on device", name)

    def sync(self, name: str) -> None:
        crashing = self._call()
        file = self._file(name)
        if crashing:
            self._end(crashing)
        if self._random.random() < self.fail:
            # The system forgets which pages were not written: another sync would claim success.
            for start, stop in file.unsynced:
                self._keep_some(file, start, stop)
            file.unsynced.clear()
            raise OSError(errno.EIO, "input/output error", name)
        if self._random.random() >= self.lose_syncs:
            file.safe[:] = file.seen
            file.unsynced.clear()

    def sync_directory(self) -> None:
        crashing = self._call()
        self._end(crashing)
        self._safe = dict(self._seen)

    def names(self) -> list[str]:
        self._end(self._call())
        return sorted(self._seen)

    def read(self, name: str) -> pa.Buffer:
        self._end(self._call())
        return pa.py_buffer(bytes(self._file(name).seen))

    def delete(self, name: str) -> None:
        crashing = self._call()
        self._seen.pop(name, None)
        self._end(crashing)

    def free_bytes(self) -> int | None:
        return None if self.capacity is None else max(0, self.capacity - self.used_bytes)

    def close(self) -> None:
        """Nothing is open."""

    def _call(self) -> bool:
        """Count a call; return whether the machine crashes during it."""
        if self._down:
            raise CrashedError("the machine is down")
        self.calls += 1
        if self.crash_in is None:
            return False
        self.crash_in -= 1
        return self.crash_in < 0

    def _end(self, crashing: bool) -> None:
        if crashing:
            self._down = True
            raise CrashedError(f"crashed during call {self.calls}")

    def _file(self, name: str) -> _File:
        if name not in self._seen:
            raise FileNotFoundError(errno.ENOENT, "no such file", name)
        return self._seen[name]

    def _used(self, name: str, upto: int) -> int:
        """Bytes of all files, of one of them only those before a place."""
        others = sum(len(file.seen) for other, file in self._seen.items() if other != name)
        return others + min(upto, len(self._seen[name].seen)) if name in self._seen else others

    def _keep_some(self, file: _File, start: int, stop: int) -> None:
        """Bring some blocks of a stretch to the medium, each by the toss of a coin."""
        for at in range(start, stop, self.block):
            if self._toss():
                end = min(at + self.block, stop)
                if len(file.safe) < end:
                    file.safe.extend(bytes(end - len(file.safe)))
                file.safe[at:end] = file.seen[at:end]

    def _toss(self) -> bool:
        return self._random.random() < 0.5
