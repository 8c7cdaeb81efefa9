"""The three structures of PanJoin's subwindows, described apart from their contents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from indexes import (
    BISort,
    PartitionedSubwindow,
    RaPTable,
    SortedSubwindow,
    Subindex,
    SubwindowIndex,
    WiBPlusTree,
    WideLeaves,
)
from operators.query.errors import JoinError

ROWS_PER_PARTITION = 64
"""Where the number of partitions is not given."""


class SubwindowStructure(ABC):
    """How the structure of a subwindow is made; frozen and picklable."""

    @abstractmethod
    def open(self, capacity: int, previous: Subindex | None) -> Subindex:
        """An empty structure; `previous` is that of an earlier subwindow of the same side, if the worker has one."""

    def seal(self, full: Subindex) -> None:  # noqa: B027  (most have nothing to do)
        """Called when the subwindow is full."""

    @abstractmethod
    def index(self, subwindow: int) -> SubwindowIndex:
        """The window index that is a chain of these; refuses invalid parameters."""


@dataclass(frozen=True)
class BISortSubwindows(SubwindowStructure):
    """Sorted main array, insertion buffer, index array (PanJoin, section III-D). See `indexes.BISort`."""

    buffer: int = 1024
    partitions: int | None = None

    def open(self, capacity: int, previous: Subindex | None) -> Subindex:
        return SortedSubwindow(capacity, self.buffer, self.partitions or max(1, capacity // ROWS_PER_PARTITION))

    def seal(self, full: Subindex) -> None:
        assert isinstance(full, SortedSubwindow)
        full.merge_buffer()
        full.buffer = None

    def index(self, subwindow: int) -> SubwindowIndex:
        return BISort(subwindow, self.buffer, self.partitions)


@dataclass(frozen=True)
class RaPTableSubwindows(SubwindowStructure):
    """Ranges of keys between splitters learnt from an earlier subwindow (section III-B). See `indexes.RaPTable`.

    The earlier subwindow is the last one of the same side at the same worker, since workers do not communicate: with n
    workers, n subwindows ago. If it has another number of partitions, splitters are learnt from scratch.
    """

    partitions: int | None = None
    sigma: float = 1.25

    def open(self, capacity: int, previous: Subindex | None) -> Subindex:
        partitions = self.partitions or max(1, capacity // ROWS_PER_PARTITION)
        if not isinstance(previous, PartitionedSubwindow) or previous.partitions != partitions or not previous.rows:
            previous = None
        return PartitionedSubwindow(capacity, partitions, self.sigma, previous)

    def index(self, subwindow: int) -> SubwindowIndex:
        return RaPTable(subwindow, self.partitions, self.sigma)


@dataclass(frozen=True)
class WiBPlusTreeSubwindows(SubwindowStructure):
    """A B+-tree with wide unsorted leaves (section III-C). See `indexes.WiBPlusTree`."""

    leaf_width: int = 128
    fanout: int = 32

    def open(self, capacity: int, previous: Subindex | None) -> Subindex:
        return WideLeaves(capacity, self.leaf_width, self.fanout)

    def index(self, subwindow: int) -> SubwindowIndex:
        return WiBPlusTree(subwindow, self.leaf_width, self.fanout)


STRUCTURES: Mapping[str, SubwindowStructure] = {
    "BISort": BISortSubwindows(),
    "RaPTable": RaPTableSubwindows(),
    "WiBPlusTree": WiBPlusTreeSubwindows(),
}

Structure = str | type[SubwindowIndex] | SubwindowStructure
"""A name, the class of `indexes` with that name, or a description with its parameters."""


def structure_of(given: Structure) -> SubwindowStructure:
    """The description of the structure that the user gave."""
    name = given.__name__ if isinstance(given, type) else given
    if isinstance(name, str) and name in STRUCTURES:
        return STRUCTURES[name]
    if not isinstance(given, SubwindowStructure):
        names = ", ".join(STRUCTURES)
        kinds = ", ".join(type(each).__name__ for each in STRUCTURES.values())
        raise JoinError(f"PanJoin: structure must be one of {names}, or one of {kinds}; not {given!r}")
    try:
        given.index(1)
    except (ValueError, TypeError) as error:
        raise JoinError(f"PanJoin: structure {given!r} cannot be made: {error}") from None
    return given
