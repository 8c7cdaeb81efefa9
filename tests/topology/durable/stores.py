"""Stores to try a log on, and a way to look at what it holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs
from pyarrow._fs import _MockFileSystem

from topology.durable.disk_store import DiskStore
from topology.durable.local_disk import LocalDisk
from topology.durable.log import Log
from topology.durable.object_store import ObjectStore
from topology.durable.record import Position, Record
from topology.durable.store import Store
from topology.durable.take_over import TakeOver, take_over
from topology.simulated.disk import SimulatedDisk

KINDS = ("simulated disk", "local disk", "objects in memory")


def new_store(kind: str, directory: Path) -> Store:
    """Return an empty store; `directory` is for those that need one."""
    if kind == "simulated disk":
        return DiskStore(SimulatedDisk())
    if kind == "local disk":
        directory.mkdir(exist_ok=True)
        return DiskStore(LocalDisk(directory))
    return objects_in_memory()


def objects_in_memory() -> ObjectStore:
    """An object store without a server."""
    filesystem: pafs.FileSystem = _MockFileSystem()
    filesystem.create_dir("bucket", recursive=True)
    return ObjectStore(filesystem, "bucket/log", readers=1)


def numbered(number: int, rows: int = 0) -> Record:
    """A record that can be told from others, with some rows if asked for."""
    batches = (pa.record_batch({"n": pa.array([number] * rows, pa.int64())}),) if rows else ()
    return Record({"n": number}, batches)


def number_of(record: Record) -> int:
    """The number of a record that `numbered` made; checks its rows."""
    number = record.header["n"]
    assert isinstance(number, int)
    for rows in record.batches:
        assert set(rows.column("n").to_pylist()) == {number}
    return number


def started(store: Store, start: Record | None = None) -> Log:
    """Take a log over, and begin a segment."""
    log = take_over(store).start(start or numbered(-1), reserve=0)
    log.commit()
    return log


def all_records(log: Log | TakeOver) -> Iterator[tuple[Position, Record]]:
    """Everything that is kept."""
    return log.records(log.segments[0]) if log.segments else iter(())


def numbers(log: Log | TakeOver) -> list[int]:
    """The numbers of all records, without start records."""
    return [number_of(record) for position, record in all_records(log) if position.record > 0]
