"""A window as one immutable B+-tree, rebuilt for every batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes.kernels.whole_numbers import check_whole_number
from indexes.one_key.candidates import Probe, Visit
from indexes.one_key.key_index import KeyIndex, Parameter
from indexes.trees.breadth_first_tree import FANOUT, BreadthFirstTree


class ImmutableBPlusTree(KeyIndex):
    """One `BreadthFirstTree` for the whole window; an insert merges the batch into a new one.

    The immutable B+-tree of PIM-Tree (section 3.1) on its own: nothing is faster to probe, but each batch rewrites the
    whole window. Choose it when batches are about as large as the window. It also shows how much `IMTree` gains by
    inserting elsewhere first. The next insert drops expired rows.

        fanout 3, rows 0.. with keys 5 2 9 7, insert 4 8:   leaves 2 4 5 | 7 8 9     entries above 5 *
        expire(2), insert 1:                                leaves 1 4 7 | 8 9       entries above 7 *

    Cost: insert O(window + batch log batch); probe O(log window) and O(1) for each row in the band.
    """

    def __init__(self, fanout: int = FANOUT, dimensions: int = 1, *, key: int = 0, first_position: int = 0) -> None:
        super().__init__(dimensions, key=key, first_position=first_position)
        check_whole_number("ImmutableBPlusTree", "fanout", fanout, least=2)
        self.fanout = fanout
        self._tree = BreadthFirstTree.of(np.empty(0, np.int64), np.empty(0, np.int64), fanout)
        self._spare: BreadthFirstTree | None = None

    def parameters(self) -> dict[str, Parameter]:
        return {"fanout": self.fanout}

    @property
    def tree(self) -> BreadthFirstTree:
        """The current tree; later inserts replace it and may overwrite its arrays."""
        return self._tree

    @property
    def nbytes(self) -> int:
        """Cost: O(1)."""
        spare = 0 if self._spare is None else self._spare.nbytes
        return self._tree.nbytes + spare + (0 if self._rows is None else self._rows.nbytes)

    def _add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        old = self._tree
        self._tree = old.merged(keys, positions, self._below, self._spare)
        self._spare = old

    def _visits(self, probe: Probe) -> Sequence[Visit]:
        return [self._tree.visit] if len(self._tree) else []

    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        return self._tree.entries()

    def check_invariants(self) -> None:
        super().check_invariants()
        self._tree.check_invariants()
