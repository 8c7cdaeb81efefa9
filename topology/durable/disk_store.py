"""A store on a disk: a file per segment, to which groups are appended, and an empty file per mark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from topology.durable.disk import Disk, Piece
from topology.durable.store import Store

_SEGMENT = "segment-"


class DiskStore(Store):
    """The order of calls decides what survives: content first, then the entry of the file in its directory."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._with_entry: set[str] = set()
        """Segments whose entry in the directory is known to survive."""
        self._created: set[str] = set()

    def write(self, segment: str, group: int, at: int, pieces: Sequence[Piece]) -> None:
        if group == 0 and segment not in self._created:
            self._disk.create(segment)
            self._created.add(segment)
        self._disk.write(segment, at, pieces)

    def sync(self, segment: str) -> None:
        self._disk.sync(segment)
        if segment not in self._with_entry:
            self._disk.sync_directory()
            self._with_entry.add(segment)

    def read(self, segment: str) -> list[pa.Buffer]:
        return [self._disk.read(segment)]

    def segments(self) -> list[str]:
        return [name for name in self._disk.names() if name.startswith(_SEGMENT)]

    def size(self, segment: str) -> int:
        return self._disk.size(segment)

    def delete(self, segment: str) -> None:
        self._disk.delete(segment)
        self._created.discard(segment)
        self._with_entry.discard(segment)

    def mark(self, name: str) -> None:
        try:
            self._disk.create(name)
        except FileExistsError:  # made by a call that failed afterwards: names of marks are not shared
            pass
        self._disk.sync_directory()

    def marks(self) -> list[str]:
        return [name for name in self._disk.names() if not name.startswith(_SEGMENT)]

    def unmark(self, name: str) -> None:
        self._disk.delete(name)

    def free_bytes(self) -> int | None:
        return self._disk.free_bytes()

    def close(self) -> None:
        self._disk.close()
