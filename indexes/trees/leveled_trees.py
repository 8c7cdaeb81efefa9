"""Immutable trees of growing size: new rows are merged into small trees often and into large ones rarely."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexes.kernels.columns import frozen
from indexes.kernels.whole_numbers import check_whole_number
from indexes.one_key.candidates import Probe, Visit
from indexes.one_key.key_index import KeyIndex, Parameter
from indexes.trees.bplus_tree_insert import insert_sorted
from indexes.trees.bplus_tree_nodes import (
    check_tree,
    make_nodes,
    new_tree,
    nodes_bytes,
    nodes_needed,
    read_tree,
    visit_tree,
)
from indexes.trees.breadth_first_tree import BreadthFirstTree, merge_live

RECENT = 1 << 15
"""Rows that the small B+-tree takes before a merge: its nodes stay in the second-level cache."""

GROWTH = 8
"""Each level holds so many times more than the one above. More: fewer levels to search; less: fewer rows to move."""

FANOUT = 64
EMPTY = frozen(np.empty(0, np.int64))


class LeveledTrees(KeyIndex):
    """An IM-Tree with more than one immutable tree: the larger the window, the more levels.

    IM-Tree (section 3.2 of PIM-Tree) has one small tree for new rows and one large tree. The small one must grow with
    the window, or the large one is rewritten for few rows. At 2^23 rows the small tree then misses the cache at each
    insert. Here the small tree keeps its size. Between it and the large tree are `BreadthFirstTree`s, each holding
    `growth` times more than the one above. Sizes are measured from the last level upwards, so the last level is
    rewritten for a `growth`-th of its rows, whatever its size. At each level a row is merged about growth / 2 times,
    sequentially, and searched for once, and all levels except the last are small. Each merge drops expired rows.
    No parameter depends on the window, so the index suits time windows, whose number of rows is not known in advance.
    It is beyond the papers.

        recent 2, growth 4, the last level holds 20 rows, so the one above it may hold 5
        levels  3 rows  20 rows      insert 5 2: recent is full and is merged down    5 rows  20 rows
        then    insert 9 1           7 rows do not fit: all go to the last            -       27 rows

    Cost: an inserted row is moved O(growth * log(window) / log(growth)) times in all, sequentially; a band costs
    O(log window) at each of the O(log(window) / log(growth)) levels and O(1) for each row in it.
    """

    def __init__(
        self,
        recent: int = RECENT,
        growth: int = GROWTH,
        fanout: int = FANOUT,
        dimensions: int = 1,
        *,
        key: int = 0,
        first_position: int = 0,
    ) -> None:
        """Up to `recent` rows are in a B+-tree of `fanout`; each level below holds `growth` times more."""
        super().__init__(dimensions, key=key, first_position=first_position)
        check_whole_number("LeveledTrees", "recent", recent)
        check_whole_number("LeveledTrees", "growth", growth, least=2)
        check_whole_number("LeveledTrees", "fanout", fanout, least=3)
        self.recent = recent
        self.growth = growth
        self.fanout = fanout
        self._nodes = make_nodes(fanout, *nodes_needed(fanout, recent))
        self._root = new_tree(self._nodes)
        self._recent_rows = 0
        self._levels: list[BreadthFirstTree] = []
        self._spares: list[BreadthFirstTree | None] = []
        self._ends: list[int] = []  # all rows of a level have positions below this

    def parameters(self) -> dict[str, Parameter]:
        return {"recent": self.recent, "growth": self.growth, "fanout": self.fanout}

    @property
    def level_rows(self) -> tuple[int, ...]:
        """Rows of each immutable level, smallest level first, expired rows included."""
        return tuple(len(level) for level in self._levels)

    @property
    def nbytes(self) -> int:
        """Cost: O(levels)."""
        trees = [*self._levels, *(spare for spare in self._spares if spare is not None)]
        rows = self._rows.nbytes if self._rows is not None else 0
        return nodes_bytes(self._nodes) + sum(tree.nbytes for tree in trees) + rows

    def _add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        if self._recent_rows + len(keys) < self.recent:
            self._root, reached = insert_sorted(self._nodes, self._root, keys, positions, 0, len(keys))
            assert reached == len(keys), "the pool has room for the recent rows"
            self._recent_rows += len(keys)
            return
        if self._recent_rows:
            keys, positions = _merged(self._recent_entries(), (keys, positions), self._below)
            self._nodes.claims[:] = 0, -1, 0, -1
            self._root = new_tree(self._nodes)
            self._recent_rows = 0
        self._settle(keys, positions)

    def _settle(self, keys: np.ndarray, positions: np.ndarray) -> None:
        """Merge sorted rows, and all levels above, into the first level that has room for them."""
        wanted = self._levels_for(len(self._levels[-1]) if self._levels else len(keys))
        while len(self._levels) > wanted:
            keys, positions = _merged(self._levels.pop(0).entries(), (keys, positions), self._below)
            self._spares.pop(0)
            self._ends.pop(0)
        while len(self._levels) < wanted:
            self._levels.insert(0, BreadthFirstTree.of(EMPTY, EMPTY))
            self._spares.insert(0, None)
            self._ends.insert(0, 0)
        for number, room in enumerate(self._rooms()):
            level = self._levels[number]
            if len(level) + len(keys) <= room or number == len(self._levels) - 1:
                self._levels[number] = level.merged(keys, positions, self._below, self._spares[number])
                self._spares[number] = level
                self._ends[number] = self.next_position
                return
            if len(level):
                keys, positions = _merged(level.entries(), (keys, positions), self._below)
                # Kept for its arrays: the next rows of this level overwrite them.
                self._spares[number] = level
                self._levels[number] = BreadthFirstTree.of(EMPTY, EMPTY)

    def _levels_for(self, rows: int) -> int:
        """How many levels there are when the last one holds `rows` rows."""
        levels, room = 1, self.recent * self.growth**1.5
        while rows > room:
            levels, room = levels + 1, room * self.growth
        return levels

    def _rooms(self) -> list[int]:
        """The most rows of each level, in proportion to the last level, which holds whatever there is."""
        last = len(self._levels[-1])
        return [last // self.growth**above for above in range(len(self._levels) - 1, -1, -1)]

    def _drop(self, below: int) -> None:
        """Drop levels without a live row; the others lose their expired rows in the next merge."""
        for number, end in enumerate(self._ends):
            if end <= below and len(self._levels[number]):
                self._levels[number] = BreadthFirstTree.of(EMPTY, EMPTY)
                self._spares[number] = None
        if below == self.next_position and self._recent_rows:
            self._nodes.claims[:] = 0, -1, 0, -1
            self._root = new_tree(self._nodes)
            self._recent_rows = 0

    def _visits(self, probe: Probe) -> Sequence[Visit]:
        visits: list[Visit] = [level.visit for level in reversed(self._levels) if len(level)]
        return [*visits, self._visit_recent] if self._recent_rows else visits

    def _visit_recent(
        self, band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe
    ) -> tuple[int, int, int]:
        found: tuple[int, int, int] = visit_tree(band, used, positions, ends, probe, self._nodes, self._root)
        return found

    def _recent_entries(self) -> tuple[np.ndarray, np.ndarray]:
        keys, positions = np.empty((2, self._recent_rows), np.int64)
        read_tree(self._nodes, self._root, keys, positions)
        return frozen(keys), frozen(positions)

    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        parts = [self._recent_entries(), *(level.entries() for level in self._levels)]
        return np.concatenate([keys for keys, _ in parts]), np.concatenate([positions for _, positions in parts])

    def check_invariants(self) -> None:
        super().check_invariants()
        # The small tree is in order and never full.
        check_tree(self._nodes, self._root)
        assert self._recent_rows < self.recent
        for number, level in enumerate(self._levels):
            level.check_invariants()
            # No tree in use is also a spare that a merge may overwrite.
            assert self._spares[number] is not level
            # All rows of a level lie before its end.
            assert not len(level) or level.entries()[1].max() < self._ends[number]


def _merged(
    one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray], below: int
) -> tuple[np.ndarray, np.ndarray]:
    """Two sorted batches as one, without positions < `below`. Cost: O(rows)."""
    both = np.empty((2, len(one[0]) + len(other[0])), np.int64)
    rows = merge_live(*one, *other, below, both)
    return frozen(both[0, :rows]), frozen(both[1, :rows])
