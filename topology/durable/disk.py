"""What a log needs of a disk: one directory of files. `LocalDisk` is a real one, the simulated one loses things."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import pyarrow as pa

Piece: TypeAlias = bytes | memoryview | pa.Buffer
"""Some bytes; several of them are written one after the other without being joined."""


class Disk(Protocol):
    """A flat directory of files. Every call may raise `OSError`.

    A disk promises little. What was written survives a crash only after `sync`; until then any part of it may be lost,
    not only its end. The entry of a new file survives only after `sync_directory`, however often the file was synced.
    Other processes that run on the machine see everything at once.
    """

    def create(self, name: str) -> None:
        """Make an empty file; `FileExistsError` if there is one."""

    def write(self, name: str, at: int, pieces: Sequence[Piece]) -> None:
        """Write at an offset. After an error, any part may have been written."""

    def sync(self, name: str) -> None:
        """Make the content of a file survive. After an error, write what was not synced again, then sync again."""

    def sync_directory(self) -> None:
        """Make the entries of all new files survive, and let those of deleted ones go."""

    def names(self) -> list[str]:
        """The names of all files."""

    def read(self, name: str) -> pa.Buffer:
        """The whole content of a file."""

    def size(self, name: str) -> int:
        """The bytes of a file."""

    def delete(self, name: str) -> None:
        """Remove a file; nothing happens if there is none."""

    def free_bytes(self) -> int | None:
        """How much can still be written; None if there is no limit."""

    def close(self) -> None:
        """Give back open files."""
