"""Where a log keeps its segments and marks: the little that local disks and object stores have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from topology.durable.disk import Piece


class Store(ABC):
    """Segments grow by groups, one group per commit; marks are names without content.

    A listing shows everything that was written, marked or deleted before it, by whichever process. That is all that
    the fencing of writers needs. Every call may raise `OSError`, and may then be made again with the same arguments:
    a group that is written again has the same bytes.
    """

    @abstractmethod
    def write(self, segment: str, group: int, at: int, pieces: Sequence[Piece]) -> None:
        """Write a group of a segment; group 0 makes the segment. `at`: the bytes of the groups before it."""

    @abstractmethod
    def sync(self, segment: str) -> None:
        """Make everything that was written to a segment survive, the segment's name included, whoever wrote it."""

    @abstractmethod
    def read(self, segment: str) -> list[pa.Buffer]:
        """Return the content of a segment, in order, each buffer beginning with a whole group."""

    @abstractmethod
    def segments(self) -> list[str]:
        """The names of all segments."""

    @abstractmethod
    def size(self, segment: str) -> int:
        """The bytes of a segment."""

    @abstractmethod
    def delete(self, segment: str) -> None:
        """Remove a segment; nothing happens if it is gone."""

    @abstractmethod
    def mark(self, name: str) -> None:
        """Make a mark. It survives when this returns, and others may see it before."""

    @abstractmethod
    def marks(self) -> list[str]:
        """The names of all marks."""

    @abstractmethod
    def unmark(self, name: str) -> None:
        """Remove a mark; nothing happens if it is gone."""

    def free_bytes(self) -> int | None:
        """How much can still be written; None if the store sets no limit."""
        return None

    def close(self) -> None:
        """Give back open files."""
        return
