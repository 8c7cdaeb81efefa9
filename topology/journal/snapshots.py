"""The snapshots of a topology's tasks, each an object of its own in a store beside the log.

    header   32 bytes: version, lengths, and a checksum that begins with the object's name
    JSON     what the driver of the task adds: the state of its groupings
    bytes    what `Task.snapshot` returned

An object is named by its barrier and its task, and a barrier by the life of the topology that placed it. So two lives
never write the same object. A snapshot counts when the journal says so, not before (`snapshot_rounds.py`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import struct
import threading
import zlib
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from topology.durable.copying import copy_objects
from topology.durable.store import Store
from topology.graph.errors import DamagedLogError
from topology.graph.graph import TaskName
from topology.graph.messages import Barrier

log = logging.getLogger("interlace")

HEADER = struct.Struct("<8sIIQQ")
"""Magic, version, checksum of all that follows, bytes of the JSON, bytes of the task."""

MAGIC = b"ILSNAP\n\0"
VERSION = 1
RETRY_SECONDS = 0.5

_NAME = re.compile(r"segment-snapshot-(\d{20})-(.+)-[0-9a-f]{16}")


@dataclass(frozen=True)
class Snapshot:
    """What a task leaves behind: its own bytes, and a few facts of its driver."""

    task: bytes
    driver: Any = None


class Snapshots:
    """Saves, loads and removes snapshots. Saving and removing happen in a thread, in order; `close` it.

    threaded: whether there is a thread; if not, whoever made it calls `work`, as a simulation does.
    on_saved: called when a snapshot is in the store, with its size.
    """

    def __init__(self, store: Store, threaded: bool = True) -> None:
        self._store = store
        self._jobs: deque[Callable[[], bool]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self.on_saved: Callable[[TaskName, Barrier, int], None] = lambda task, barrier, size: None
        self._thread: threading.Thread | None = None
        if threaded:
            self._thread = threading.Thread(target=self._run, name="snapshots", daemon=True)
            self._thread.start()

    def save(self, task: TaskName, barrier: Barrier, snapshot: Snapshot) -> None:
        """Have a snapshot saved; returns at once."""
        self._add(partial(self._save, task, barrier, snapshot))

    def load(self, task: TaskName, barrier: Barrier) -> Snapshot:
        """Return a snapshot that was saved before."""
        name = _name(task, barrier)
        try:
            content = b"".join(map(bytes, self._store.read(name)))
        except FileNotFoundError:
            content = b""
        if len(content) < HEADER.size:
            raise DamagedLogError(f"the snapshot of {task[0]}[{task[1]}] at {barrier.checkpoint} is missing: {name}")
        magic, version, checksum, facts, size = HEADER.unpack_from(content)
        rest = content[HEADER.size :]
        if magic != MAGIC or len(rest) != facts + size or checksum != zlib.crc32(rest, zlib.crc32(name.encode())):
            raise DamagedLogError(f"the snapshot of {task[0]}[{task[1]}] at {barrier.checkpoint} is damaged: {name}")
        if version != VERSION:
            raise DamagedLogError(f"{name} has version {version}, and this program reads {VERSION}")
        return Snapshot(rest[facts:], json.loads(rest[:facts]))

    def size(self, barrier: Barrier) -> int:
        """The bytes of all snapshots of a barrier, by whichever process they were saved."""
        found = [(name, _NAME.fullmatch(name)) for name in self._store.segments()]
        wanted = (f"{barrier.checkpoint:020}", barrier.life)
        return sum(self._store.size(name) for name, match in found if match is not None and match.groups() == wanted)

    def forget(self, is_over: Callable[[Barrier], bool], may_begin: Callable[[], bool] = lambda: True) -> None:
        """Have the snapshots of some barriers removed, once `may_begin` says so; both are called by the thread."""
        self._add(partial(self._forget, is_over, may_begin))

    def work(self) -> bool:
        """Do what is due; return whether that was done, rather than nothing or in vain."""
        with self._changed:
            job = self._jobs[0] if self._jobs else None
        if job is None or not job():
            return False
        with self._changed:
            self._jobs.popleft()
        return True

    def close(self) -> None:
        """End the thread; what has not been saved never will be."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        self._store.close()

    def _add(self, job: Callable[[], bool]) -> None:
        with self._changed:
            self._jobs.append(job)
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._jobs)
                if self._closed:
                    return
            if not self.work():
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, RETRY_SECONDS)

    def _save(self, task: TaskName, barrier: Barrier, snapshot: Snapshot) -> bool:
        name = _name(task, barrier)
        facts = json.dumps(snapshot.driver, allow_nan=False).encode()
        checksum = zlib.crc32(snapshot.task, zlib.crc32(facts, zlib.crc32(name.encode())))
        header = HEADER.pack(MAGIC, VERSION, checksum, len(facts), len(snapshot.task))
        try:
            self._store.write(name, 0, 0, [header, facts, snapshot.task])
            self._store.sync(name)
        except OSError as error:
            log.warning("the snapshot of %s[%d] is not saved yet: %s", *task, error)
            return False
        self.on_saved(task, barrier, HEADER.size + len(facts) + len(snapshot.task))
        return True

    def _forget(self, is_over: Callable[[Barrier], bool], may_begin: Callable[[], bool]) -> bool:
        try:
            if not may_begin():
                return False
            for name in self._store.segments():
                found = _NAME.fullmatch(name)
                if found is not None and is_over(Barrier(int(found[1]), found[2])):
                    self._store.delete(name)
        except OSError as error:
            log.warning("old snapshots are not removed yet: %s", error)
            return False
        return True


def copy_snapshots(source: Store, target: Store, barriers: Collection[Barrier] | None = None) -> None:
    """Copy the snapshots of some barriers, or all, to another store; harmless when repeated."""
    found = ((name, _NAME.fullmatch(name)) for name in source.segments())
    wanted = [
        name
        for name, match in found
        if match is not None and (barriers is None or Barrier(int(match[1]), match[2]) in barriers)
    ]
    copy_objects(source, target, wanted)


def _name(task: TaskName, barrier: Barrier) -> str:
    """The name of an object; names of components may be longer than names of files."""
    digest = hashlib.sha256(f"{task[0]}/{task[1]}".encode()).hexdigest()[:16]
    return f"segment-snapshot-{barrier.checkpoint:020}-{barrier.life}-{digest}"
