"""A window as a chain of subwindows: the newest grows, the oldest is dropped as a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from indexes.kernels.columns import frozen
from indexes.kernels.whole_numbers import check_whole_number
from indexes.one_key.candidates import Probe, Visit
from indexes.one_key.key_index import KeyIndex


class Subindex(ABC):
    """The structure of one subwindow. Rows are added until it is full; none is ever removed."""

    @abstractmethod
    def add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        """Add rows newer than all held: int64 keys ascending, equal ones by position, and their positions."""

    @abstractmethod
    def visit(
        self, band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe
    ) -> tuple[int, int, int]:
        """Write the matches of the bands; see `candidates.Visit`."""

    @abstractmethod
    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys and positions of all rows, in any order."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes held. Cost: O(1)."""

    @abstractmethod
    def check_invariants(self) -> None:
        """Assert what must hold between any two calls."""


class SubwindowIndex(KeyIndex):
    """Rows at positions [i * subwindow, (i + 1) * subwindow) share a subindex, even if some have invalid keys.

    This is the chained index of PIM-Tree (section 2.2.2) and PanJoin's subwindows (section III-A). Inserts go to the
    newest subindex only. The oldest is dropped once all its rows have expired; until then the probes' live ranges
    leave out the expired ones.

        subwindow=4     rows 0 1 2 3 | 4 5 6 7 | 8 9     expire(5) drops the first subindex,
                                                         row 4 stays until expire(8)
    """

    def __init__(self, subwindow: int, dimensions: int = 1, *, key: int = 0, first_position: int = 0) -> None:
        check_whole_number(type(self).__name__, "subwindow", subwindow)
        super().__init__(dimensions, key=key, first_position=first_position)
        self.subwindow = subwindow
        self._chain: list[tuple[int, Subindex]] = []

    @abstractmethod
    def _open(self, previous: Subindex | None) -> Subindex:
        """Make an empty subindex; `previous` is the one before it, sealed or not."""

    def _seal(self, full: Subindex) -> Subindex:
        """Replace a subindex when a newer one is opened after it."""
        return full

    @property
    def subindexes(self) -> tuple[Subindex, ...]:
        """Oldest first."""
        return tuple(subindex for _, subindex in self._chain)

    @property
    def nbytes(self) -> int:
        """Cost: O(subwindows)."""
        return sum(subindex.nbytes for _, subindex in self._chain) + (self._rows.nbytes if self._rows else 0)

    def _add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        numbers = positions // self.subwindow
        for number in range(int(numbers.min()), int(numbers.max()) + 1):
            inside = numbers == number
            if not inside.any():
                continue
            if not self._chain or self._chain[-1][0] != number:
                previous = self._chain[-1][1] if self._chain else None
                if previous is not None:
                    self._chain[-1] = self._chain[-1][0], self._seal(previous)
                self._chain.append((number, self._open(previous)))
            newest = self._chain[-1][1]
            if inside.all():
                newest.add(keys, positions)
            else:
                newest.add(frozen(keys[inside]), frozen(positions[inside]))

    def _drop(self, below: int) -> None:
        dead = 0
        while dead < len(self._chain) and (self._chain[dead][0] + 1) * self.subwindow <= below:
            dead += 1
        del self._chain[:dead]

    def _visits(self, probe: Probe) -> Sequence[Visit]:
        start, end = int(probe.start.min()), int(probe.end.max())
        return [
            subindex.visit
            for number, subindex in self._chain
            if number * self.subwindow < end and (number + 1) * self.subwindow > start
        ]

    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        parts = [subindex.entries() for _, subindex in self._chain]
        if not parts:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return np.concatenate([keys for keys, _ in parts]), np.concatenate([positions for _, positions in parts])

    def check_invariants(self) -> None:
        super().check_invariants()
        numbers = [number for number, _ in self._chain]
        # Subwindows ascend.
        assert numbers == sorted(set(numbers))
        for number, subindex in self._chain:
            _, positions = subindex.entries()
            # Each holds only rows of its own subwindow, and none is empty.
            assert len(positions)
            assert (positions // self.subwindow == number).all()
            subindex.check_invariants()
