"""The partitioned in-memory merge tree: an IM-Tree that several threads fill and probe at once."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from indexes.kernels.columns import Interval, Keys, Live, Matches, frozen
from indexes.kernels.ordered_integers import ordered_integers
from indexes.kernels.whole_numbers import check_whole_number
from indexes.one_key.candidates import Probe, Visit, collect
from indexes.one_key.key_index import KeyIndex, Parameter, sorted_rows
from indexes.trees.breadth_first_tree import FANOUT as IMMUTABLE_FANOUT
from indexes.trees.breadth_first_tree import BreadthFirstTree, merge_live
from indexes.trees.im_tree import FANOUT, MERGE_RATIO, check_merge_ratio
from indexes.trees.partitions import Partitions
from indexes.trees.shared_row_columns import SharedRowColumns

INSERTION_DEPTH = 2
"""17 to 256 partitions, depending on how full the root is. Deeper, a small batch takes a lock for every few rows."""

AT_ONCE = 1 << 15
"""Merging up to so many rows takes hardly longer than starting a thread, so the inserting thread does it."""

Structure = TypeVar("Structure", BreadthFirstTree, Partitions)

NOTHING = frozen(np.empty(0, np.int64))


class View(NamedTuple):
    """All rows that a probe sees, each in one place. It is replaced as a whole; inserts change only `recent`."""

    settled: BreadthFirstTree
    recent: Partitions
    merging: Partitions | None = None
    batch: BreadthFirstTree | None = None  # rows that have begun the merge

    def parts(self) -> list[BreadthFirstTree | Partitions]:
        parts = (self.settled, self.merging, self.batch, self.recent)
        return [part for part in parts if part is not None]

    def visits(self) -> list[Visit]:
        return [part.visit for part in self.parts() if len(part)]


class PIMTree(KeyIndex):
    """New rows in `Partitions`, one small B+-tree per key range; all others in a `BreadthFirstTree`.

    The PIM-Tree (section 3.3) with its non-blocking merge in two phases (section 4.2). The nodes of the immutable tree
    at `insertion_depth` define the key ranges. When the new rows reach `merge_ratio * window`, both components are
    merged into a new tree without the expired rows, and the ranges adapt to it:

      1. The batch that reaches the limit becomes a small tree of its own, and new partitions are opened beside those to
         be merged. From now on inserts go there, and probes search the old tree, the rows being merged and the newest
         rows. `insert` returns, and a thread that ends with the merge builds the new tree.
      2. When the new tree is built, inserts wait, but probes do not, while the rows of phase 1 are moved into the
         partitions of the new tree. Then tree and partitions are swapped in.

    With merge="blocking", the inserting thread merges, and inserts and probes wait until it is done. It also merges if
    there are at most `at_once` rows.

    Where we depart: the paper leaves the rows of phase 1 unindexed and lets probes scan them; here they are indexed at
    once, in the old ranges. If phase 1 lasts so long that the new partitions fill up as well, inserts wait for its end.
    The probe's live range, not an "edge tuple", decides which rows it may meet. The merging thread is none of the
    join's: one of those would be missing for the probes of the step.

    Threads: any number of threads may call `insert`, `insert_at`, `probe`, `count`, `expire` and `merge` at once. A
    probe meets every row whose insert had returned before the probe began. It may also meet rows that are being
    inserted, but reports none that does not match. No running probe may include positions below `expire`'s bound.
    Call `snapshot`, `nbytes` and `check_invariants` only while nothing else runs; they wait for a merge, if need be.

        window 16, merge_ratio 1/2, insertion_depth 1, immutable_fanout 3
        tree               2 4 4 | 5 7 8 | 9 9 11     its three leaves are the nodes at depth 1
        insert 3 10 6 4    3 4   | 6     | 10         ranges up to 4, up to 8, and the rest
        insert 1 1 2 7     8 new rows: all are merged into a new tree, one level higher
        tree               1 1 2 | 2 3 4 | 4 4 5 || 6 7 7 | 8 9 9 | 10 11
        ranges             up to 5, and the rest

    Cost: as an `IMTree` whose small tree has the rows of one partition, plus a lock for each partition that a batch
    meets.
    """

    concurrent_inserts: ClassVar[bool] = True

    def __init__(
        self,
        window: int,
        merge_ratio: float = MERGE_RATIO,
        insertion_depth: int = INSERTION_DEPTH,
        fanout: int = FANOUT,
        immutable_fanout: int = IMMUTABLE_FANOUT,
        merge: Literal["non-blocking", "blocking"] = "non-blocking",
        dimensions: int = 1,
        *,
        at_once: int = AT_ONCE,
        key: int = 0,
        first_position: int = 0,
    ) -> None:
        """For about `window` rows; `fanout` belongs to the small trees, `immutable_fanout` to the large one.

        While the tree is less deep than `insertion_depth`, its leaves define the partitions.
        """
        super().__init__(dimensions, key=key, first_position=first_position)
        check_whole_number("PIMTree", "window", window)
        check_whole_number("PIMTree", "fanout", fanout, least=3)
        check_whole_number("PIMTree", "immutable_fanout", immutable_fanout, least=2)
        check_whole_number("PIMTree", "insertion_depth", insertion_depth, least=0)
        check_whole_number("PIMTree", "at_once", at_once, least=0)
        check_merge_ratio("PIMTree", merge_ratio)
        if merge not in ("non-blocking", "blocking"):
            raise ValueError(f'PIMTree: merge must be "non-blocking" or "blocking", not {merge!r}')
        self.window = window
        self.merge_ratio = merge_ratio
        self.insertion_depth = insertion_depth
        self.fanout = fanout
        self.immutable_fanout = immutable_fanout
        self.merge_mode = merge
        self.at_once = at_once
        self.recent_limit = max(1, int(merge_ratio * window))
        if self._rows is not None:
            self._rows = SharedRowColumns(dimensions - 1, first_position)
        settled = BreadthFirstTree.of(NOTHING, NOTHING, immutable_fanout)
        # Guards every field below, and `next_position` and `_below` of the base class.
        self._changed = threading.Condition()
        self._view = View(settled, self._partitions(settled))
        self._reserved = 0  # rows in the newest partitions, including those being inserted
        self._writers: dict[Partitions, int] = {}  # threads that are inserting, by partitions
        self._readers: dict[BreadthFirstTree, int] = {}  # probes that are running, by tree
        self._merging = False  # a thread is merging
        self._closed = False  # no insert may begin
        self._failed: BaseException | None = None  # what interrupted a merge, so that rows may be missing
        self._merges = self._probes_beside_merge = 0
        self._retired: BreadthFirstTree | None = None  # the previous tree; reused when no probe reads it

    def parameters(self) -> dict[str, Parameter]:
        return {
            "window": self.window,
            "merge_ratio": self.merge_ratio,
            "insertion_depth": self.insertion_depth,
            "fanout": self.fanout,
            "immutable_fanout": self.immutable_fanout,
            "merge": self.merge_mode,
            "at_once": self.at_once,
        }

    def counters(self) -> Mapping[str, int]:
        """Merges, and probes (batches of them) that were answered while a merge was going on."""
        return {"merges": self._merges, "probes_beside_merge": self._probes_beside_merge}

    @property
    def recent(self) -> np.ndarray:
        """The new rows in each partition. Cost: O(partitions)."""
        return self._view.recent.rows

    @property
    def settled(self) -> int:
        """Rows in the immutable tree, expired ones included."""
        return len(self._view.settled)

    @property
    def nbytes(self) -> int:
        """Cost: O(1)."""
        retired = 0 if self._retired is None else self._retired.nbytes
        held = sum(part.nbytes for part in self._view.parts())
        return held + retired + (0 if self._rows is None else self._rows.nbytes)

    def insert(self, keys: Sequence[Keys]) -> None:
        """Cost: O(n log n) to sort the batch; for each row O(log(rows of a partition)) and a share of a merge."""
        with self._changed:
            first = self.next_position
            self.next_position += len(keys[0])
        self._insert(first, keys)

    def insert_at(self, first_position: int, keys: Sequence[Keys]) -> None:
        """Cost: as `insert`."""
        with self._changed:
            self.next_position = max(self.next_position, first_position + len(keys[0]))
        self._insert(first_position, keys)

    def probe_within(
        self, limit: int, intervals: Sequence[Interval], live: Live, *, ordered: bool = True
    ) -> Matches | None:
        """Cost: O(log window) for a band, O(1) for each row in it, and a lock for each partition a batch meets."""
        assert len(intervals) == self.dimensions, "one interval per dimension"
        while True:
            columns = self._rows.values if self._rows is not None else None
            view = self._open_view()
            try:
                probe = self._probe(intervals, live)
                found = collect(view.visits(), probe, len(live), limit, ordered) if len(probe.row) else None
            finally:
                self._close_view(view)
            # The ring moved: rows inserted since are only in the new one.
            if self._rows is None or self._rows.values is columns:
                return found if len(probe.row) else Matches.empty(len(live))

    def expire(self, below: int) -> None:
        """Cost: O(1); the next merge drops the rows."""
        with self._changed:
            super().expire(below)

    def merge(self) -> None:
        """Merge now, and wait for the end, unless a merge is going on. Cost: O(window)."""
        with self._changed:
            if self._merging or not self._reserved:
                return
            self._merging = True
        self._merge(NOTHING, NOTHING)
        self._wait_for_merge()

    def snapshot(self) -> dict[str, np.ndarray]:
        self._wait_for_merge()
        return super().snapshot()

    def _partitions(self, settled: BreadthFirstTree) -> Partitions:
        return Partitions(settled, self.insertion_depth, self.fanout, self.recent_limit)

    def _insert(self, first: int, keys: Sequence[Keys]) -> None:
        assert len(keys) == self.dimensions, "one key column per dimension"
        if not len(keys[0]):
            return
        # First, because a probe that meets the row reads its other keys.
        if self._rows is not None:
            self._rows.append(first, [ordered_integers(keys[d].values) for d in self._others], self._below)
        integers, positions = sorted_rows(keys, self.key, first)
        if len(integers):
            self._add(integers, positions)

    def _add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        recent = self._begin_insert(len(keys))
        if recent is None:
            self._merge(keys, positions)
            return
        recent.add(keys, positions)
        with self._changed:
            if _leave(self._writers, recent):
                self._changed.notify_all()

    def _begin_insert(self, rows: int) -> Partitions | None:
        """The partitions into which to insert `rows` rows, or None if this thread must merge instead."""
        with self._changed:
            while True:
                self._check()
                full = self._reserved + rows >= self.recent_limit
                if full and not self._merging:
                    self._merging = True
                    return None
                if not full and not self._closed:
                    recent = self._view.recent
                    self._reserved += rows
                    _enter(self._writers, recent)
                    return recent
                self._changed.wait()

    def _merge(self, keys: np.ndarray, positions: np.ndarray) -> None:
        """Merge all rows and the given ones, sorted by key, into a new tree. This thread has set `_merging`.

        A merge that is interrupted (out of memory, Ctrl-C) breaks the index: all waiting and later calls raise.
        """
        try:
            before = self._view
            batch = BreadthFirstTree.of(keys, positions, self.immutable_fanout)
            opened = self._partitions(before.settled)
            with self._changed:
                during = View(before.settled, opened, before.recent, batch)
                if self.merge_mode == "non-blocking":
                    self._view = during
                    self._reserved = 0
                    self._changed.notify_all()
                else:
                    self._closed = True
            at_once = self.merge_mode == "blocking" or len(before.settled) + len(keys) <= self.at_once
            if not at_once:
                threading.Thread(target=self._merge_beside, args=(during,), name="interlace-merge").start()
                return
            self._build(during)
        except BaseException as error:
            self._fail(error)
            raise

    def _merge_beside(self, during: View) -> None:
        """Build in a thread of its own; what interrupts it is raised by the next call of any other."""
        try:
            self._build(during)
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._failed = error
            self._changed.notify_all()

    def _check(self) -> None:
        if self._failed is not None:
            message = "PIMTree: a merge was interrupted and rows may be missing: restore it from a snapshot"
            raise RuntimeError(message) from self._failed

    def _wait_for_merge(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._merging or self._failed is not None)
            self._check()

    def _build(self, during: View) -> None:
        """Both phases, from the view that is in use during the first to that after the merge."""
        merging, batch = during.merging, during.batch
        assert merging is not None
        assert batch is not None
        with self._changed:
            self._changed.wait_for(lambda: merging not in self._writers)
            spare = None if self._retired in self._readers else self._retired
            self._retired = None
        recent_keys, recent_positions = merging.entries()
        both = np.empty((2, len(recent_keys) + len(batch)), np.int64)
        rows = merge_live(recent_keys, recent_positions, *batch.entries(), self._below, both)
        settled = during.settled.merged(frozen(both[0, :rows]), frozen(both[1, :rows]), self._below, spare)
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: during.recent not in self._writers)
            recent = self._partitions(settled)
            recent.add(*during.recent.entries())
            self._reserved = len(recent)
            self._view = View(settled, recent)
            self._retired = during.settled
            self._closed = self._merging = False
            self._merges += 1
            self._changed.notify_all()

    def _open_view(self) -> View:
        with self._changed:
            if self.merge_mode == "blocking":
                self._changed.wait_for(lambda: not self._merging or self._failed is not None)
            self._check()
            _enter(self._readers, self._view.settled)
            self._probes_beside_merge += self._view.merging is not None
            return self._view

    def _close_view(self, view: View) -> None:
        with self._changed:
            _leave(self._readers, view.settled)

    def _probe(self, intervals: Sequence[Interval], live: Live) -> Probe:
        while True:
            probe = super()._probe(intervals, live)
            # The ring may move between reading its mask and reading its values.
            if self._rows is None or probe.mask + 1 == probe.others.shape[1]:
                return probe

    def _visits(self, probe: Probe) -> Sequence[Visit]:
        return self._view.visits()

    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        parts = [part.entries() for part in self._view.parts()]
        return np.concatenate([keys for keys, _ in parts]), np.concatenate([positions for _, positions in parts])

    def check_invariants(self) -> None:
        self._wait_for_merge()
        super().check_invariants()
        # No thread inserts, merges or probes.
        assert not self._writers
        assert not self._merging
        assert not self._closed
        assert not self._readers
        # There is one set of partitions; its rows are counted and it is not full.
        assert self._reserved == len(self._view.recent) < self.recent_limit
        assert self._view.merging is None
        assert self._view.batch is None
        self._view.recent.check_invariants()
        # The ranges come from the tree in use.
        assert self._view.recent.arrays.tree is self._view.settled.arrays
        self._view.settled.check_invariants()
        # The retired tree is not the one in use.
        assert self._retired is not self._view.settled


def _enter(inside: dict[Structure, int], structure: Structure) -> None:
    """Count one more thread."""
    inside[structure] = inside.get(structure, 0) + 1


def _leave(inside: dict[Structure, int], structure: Structure) -> bool:
    """Count one thread less. Returns whether it was the last."""
    inside[structure] -= 1
    if inside[structure]:
        return False
    del inside[structure]
    return True
