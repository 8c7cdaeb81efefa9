"""The classic B+-tree over a window."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes.kernels.whole_numbers import check_whole_number
from indexes.one_key.arrival_keys import ArrivalKeys
from indexes.one_key.candidates import Probe, Visit
from indexes.one_key.key_index import KeyIndex, Parameter
from indexes.trees.linked_tree import FANOUT, LinkedTree


class BPlusTree(KeyIndex):
    r"""A B+-tree with linked leaves; each row is removed when it expires.

    Section 2.2.1 of PIM-Tree: the plain way to index a window, the paper's baseline. A probe finds the low end of a
    band and reads along the leaves.

    Where we depart: rows are inserted and removed in sorted batches, so one descent serves all rows of the same leaf
    and the leaf is rewritten once. Entries are ordered by (key, position), so one row among many equal keys is found
    as quickly as any other.

        fanout 4, rows 0.. with keys 30 10 20 10 40 31 25

                        25
                  /          \
             10 10 20  ->  25 30 31 40         expire(2) removes (10, 1) and (30, 0):
                                               10 20 -> 25 31 40

    Cost: O(log n + fanout) to insert or remove a row, less if rows of a batch share a leaf; O(log n) for
    a band and O(1) for each row in it. Memory: 25 to 31 bytes a row, and 9 to 18 more for its key by position.
    """

    def __init__(
        self, fanout: int = FANOUT, dimensions: int = 1, *, key: int = 0, first_position: int = 0
    ) -> None:
        super().__init__(dimensions, key=key, first_position=first_position)
        check_whole_number("BPlusTree", "fanout", fanout, least=3)
        self.fanout = fanout
        self._tree = LinkedTree(fanout)
        self._arrivals = ArrivalKeys()
        self._removed = first_position

    def parameters(self) -> dict[str, Parameter]:
        return {"fanout": self.fanout}

    @property
    def nbytes(self) -> int:
        """Cost: O(1)."""
        return self._tree.nbytes + self._arrivals.nbytes + (self._rows.nbytes if self._rows else 0)

    def _add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        if not len(self._tree):
            self._removed = self._below
        self._arrivals.put(keys, positions, self._below, self.next_position)
        self._tree.add(keys, positions)

    def _drop(self, below: int) -> None:
        if not len(self._tree):
            return
        keys, positions = self._arrivals.take(self._removed, below)
        self._removed = below
        if len(keys):
            self._tree.remove(keys, positions)

    def _visits(self, probe: Probe) -> Sequence[Visit]:
        return [self._tree.visit]

    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        return self._tree.entries()

    def check_invariants(self) -> None:
        super().check_invariants()
        _, positions = self._tree.entries()
        # Expired rows are removed at once.
        assert not len(positions) or positions.min() >= self._below
        self._tree.check_invariants()
