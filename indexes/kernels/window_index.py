"""The interface of all window indexes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import numpy as np

from indexes.kernels.columns import EVERYWHERE, Interval, Keys, Live, Matches

COUNTED_AT_ONCE = 1 << 22
"""Most matches that counting by enumeration holds in memory."""


class WindowIndex(ABC):
    """One side's window: insert rows by position, probe them with intervals, expire the oldest.

    The result of a probe depends only on the rows inserted and on the arguments. Expiry does not change it: after
    `expire(below)` the caller's live ranges leave out positions < below, so an index may keep those rows as long as
    that is convenient.

    A new index defines `insert`, `probe_within`, `snapshot`, `restore` and `check_invariants`; everything else has a
    safe default. `KeyIndex` and `SubwindowIndex` define most of it for indexes over one key.
    """

    concurrent_inserts: ClassVar[bool] = False
    """Several threads may insert at once, with `insert_at`, while others probe."""

    @abstractmethod
    def insert(self, keys: Sequence[Keys]) -> None:
        """Add rows at the next positions: one key column per dimension, all of the same length."""

    def insert_at(self, first_position: int, keys: Sequence[Keys]) -> None:
        """Add rows at the positions from `first_position` on, which no other call uses.

        Only where `concurrent_inserts` is set: there threads insert disjoint ranges of positions in any order.
        """
        raise NotImplementedError(f"{type(self).__name__} stores rows in the order of positions: use insert")

    @abstractmethod
    def probe_within(
        self, limit: int, intervals: Sequence[Interval], live: Live, *, ordered: bool = True
    ) -> Matches | None:
        """As `probe`, but None if there are more than `limit` matches.

        The caller then splits the probe batch; a single row never has more matches than there are rows.
        """

    @abstractmethod
    def snapshot(self) -> dict[str, np.ndarray]:
        """Plain arrays from which `restore` makes an index that gives the same answers."""

    @classmethod
    @abstractmethod
    def restore(cls, snapshot: Mapping[str, np.ndarray]) -> Self:
        """Make an index from a snapshot."""

    def probe(self, intervals: Sequence[Interval], live: Live, *, ordered: bool = True) -> Matches:
        """For each probe row, the live positions whose keys satisfy every dimension's interval.

        Positions ascend within each row if `ordered`, otherwise they come in any order.
        """
        matches = self.probe_within(EVERYWHERE, intervals, live, ordered=ordered)
        assert matches is not None, "there is no limit to exceed"
        return matches

    def count(self, intervals: Sequence[Interval], live: Live) -> np.ndarray:
        """The number of matches of each probe row, int64.

        Cost: as `probe`, in bounded memory. An index that can count without enumerating overrides it.
        """
        rows = len(live)
        matches = self.probe_within(COUNTED_AT_ONCE if rows > 1 else EVERYWHERE, intervals, live, ordered=False)
        if matches is not None:
            return matches.counts()
        half = rows // 2
        parts = [slice(0, half), slice(half, rows)]
        return np.concatenate([self.count([one.rows(part) for one in intervals], live.rows(part)) for part in parts])

    def expire(self, below: int) -> None:  # noqa: B027  (keeping everything is correct)
        """Allow the index to drop positions < `below`: no later probe may meet them."""

    def counters(self) -> Mapping[str, int]:
        """What the index has done so far, by name, to be shown among its owner's metrics; most count nothing."""
        return {}

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays held."""
        return sum(array.nbytes for array in self.snapshot().values())

    @abstractmethod
    def check_invariants(self) -> None:
        """Assert what must hold between any two calls. For tests; it may cost more than a probe."""
