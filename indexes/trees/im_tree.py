"""The in-memory merge tree: new rows in a classic B+-tree, all others in an immutable one."""

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
from indexes.trees.breadth_first_tree import FANOUT as IMMUTABLE_FANOUT
from indexes.trees.breadth_first_tree import BreadthFirstTree, merge_live

FANOUT = 64
"""Entries per node of the small tree."""

MERGE_RATIO = 1 / 16
"""From 1/32 to 1/8 the differences are small."""


class IMTree(KeyIndex):
    """A small B+-tree for inserts; when it is full, it is merged into a `BreadthFirstTree`.

    The IM-Tree of PIM-Tree (section 3.2). When the new rows, `recent`, reach `merge_ratio * window`, they are merged
    with the others, `settled`, into a new immutable tree without the expired rows. Until then the probes' live ranges
    leave out expired rows. A probe searches both trees.

    Where we depart: a batch that would fill the small tree is merged at once instead, so batches of any size work, and
    one of `merge_ratio * window` rows costs one merge. The leaf arrays of the previous tree serve as the paper's merge
    buffer: the next merge overwrites them.

        window 8, merge_ratio 1/2, batches of 3 rows
        insert 5 2 9     recent 2 5 9                    settled (empty)
        insert 7 4 8     recent (empty)                  settled 2 4 5 7 8 9
        insert 3 6 1     recent 1 3 6                    settled 2 4 5 7 8 9
        expire(2) and insert 5 5 0                       settled 0 1 3 4 5 5 6 7 8 9

    Cost: a row inserted costs O(log(merge_ratio * window)) in the small tree, and O(1 / merge_ratio) for
    its share of the merge; a band O(log window) in each tree and O(1) for each row in it.
    """

    def __init__(
        self,
        window: int,
        merge_ratio: float = MERGE_RATIO,
        fanout: int = FANOUT,
        immutable_fanout: int = IMMUTABLE_FANOUT,
        dimensions: int = 1,
        *,
        key: int = 0,
        first_position: int = 0,
    ) -> None:
        """For about `window` rows; `fanout` belongs to the small tree, `immutable_fanout` to the large one."""
        super().__init__(dimensions, key=key, first_position=first_position)
        check_whole_number("IMTree", "window", window)
        check_whole_number("IMTree", "fanout", fanout, least=3)
        check_whole_number("IMTree", "immutable_fanout", immutable_fanout, least=2)
        check_merge_ratio("IMTree", merge_ratio)
        self.window = window
        self.merge_ratio = merge_ratio
        self.fanout = fanout
        self.immutable_fanout = immutable_fanout
        self.recent_limit = max(1, int(merge_ratio * window))
        self._nodes = make_nodes(fanout, *nodes_needed(fanout, self.recent_limit))
        self._root = new_tree(self._nodes)
        self._recent = 0
        self._settled = BreadthFirstTree.of(np.empty(0, np.int64), np.empty(0, np.int64), immutable_fanout)
        self._spare: BreadthFirstTree | None = None

    def parameters(self) -> dict[str, Parameter]:
        return {
            "window": self.window,
            "merge_ratio": self.merge_ratio,
            "fanout": self.fanout,
            "immutable_fanout": self.immutable_fanout,
        }

    @property
    def recent(self) -> int:
        """Rows in the small tree."""
        return self._recent

    @property
    def settled(self) -> int:
        """Rows in the immutable tree, expired ones included."""
        return len(self._settled)

    @property
    def nbytes(self) -> int:
        """Cost: O(1)."""
        trees = nodes_bytes(self._nodes) + self._settled.nbytes + (0 if self._spare is None else self._spare.nbytes)
        return trees + (0 if self._rows is None else self._rows.nbytes)

    def merge(self) -> None:
        """Merge all rows into the immutable tree and drop the expired ones. Cost: O(window)."""
        if self._recent:
            self._merge(*self._recent_entries())

    def _add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        if self._recent + len(keys) < self.recent_limit:
            self._root, reached = insert_sorted(self._nodes, self._root, keys, positions, 0, len(keys))
            assert reached == len(keys), "the pool has room for the rows of the limit"
            self._recent += len(keys)
        elif not self._recent:
            self._merge(keys, positions)
        else:
            both = np.empty((2, self._recent + len(keys)), np.int64)
            rows = merge_live(*self._recent_entries(), keys, positions, self._below, both)
            self._merge(frozen(both[0, :rows]), frozen(both[1, :rows]))

    def _merge(self, keys: np.ndarray, positions: np.ndarray) -> None:
        old = self._settled
        self._settled = old.merged(keys, positions, self._below, self._spare)
        self._spare = old
        self._nodes.claims[:] = 0, -1, 0, -1
        self._root = new_tree(self._nodes)
        self._recent = 0

    def _visits(self, probe: Probe) -> Sequence[Visit]:
        visits: list[Visit] = []
        if self._settled:
            visits.append(self._settled.visit)
        if self._recent:
            visits.append(self._visit_recent)
        return visits

    def _visit_recent(
        self, band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe
    ) -> tuple[int, int, int]:
        found: tuple[int, int, int] = visit_tree(band, used, positions, ends, probe, self._nodes, self._root)
        return found

    def _recent_entries(self) -> tuple[np.ndarray, np.ndarray]:
        keys, positions = np.empty((2, self._recent), np.int64)
        read_tree(self._nodes, self._root, keys, positions)
        return frozen(keys), frozen(positions)

    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        keys, positions = self._recent_entries()
        settled_keys, settled_positions = self._settled.entries()
        return np.concatenate([settled_keys, keys]), np.concatenate([settled_positions, positions])

    def check_invariants(self) -> None:
        super().check_invariants()
        # The small tree is in order, its rows are counted, and it is never full.
        _, _, entries = check_tree(self._nodes, self._root)
        assert entries == self._recent < self.recent_limit
        self._settled.check_invariants()
        # A merge buffer is not the tree in use.
        assert self._spare is not self._settled


def check_merge_ratio(owner: str, merge_ratio: object) -> None:
    """Refuse a value that is not a number in (0, 1]."""
    number = isinstance(merge_ratio, int | float) and not isinstance(merge_ratio, bool)
    if not number or not 0 < merge_ratio <= 1:  # type: ignore[operator]
        raise ValueError(f"{owner}: merge_ratio must lie in (0, 1], not {merge_ratio!r}")
