"""The reference: compare every probe row with every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from indexes.kernels.columns import Interval, Keys, Live, Matches
from indexes.kernels.window_index import WindowIndex


def scan(columns: Sequence[Keys], first_position: int, intervals: Sequence[Interval], live: Live) -> Matches:
    """All matches, straight from the definition, in order. Cost: O(probes * rows * dimensions), in time and space."""
    rows = len(columns[0])
    positions = np.arange(first_position, first_position + rows, dtype=np.int64)
    met = (positions >= live.start[:, None]) & (positions < live.end[:, None])
    for keys, interval in zip(columns, intervals, strict=True):
        inside = keys.values >= interval.low[:, None]
        inside &= keys.values <= interval.high[:, None]
        met &= inside != interval.negated
        if keys.valid is not None:
            met &= keys.valid
    probe_rows, matched = np.nonzero(met)
    offsets = np.zeros(len(live) + 1, np.int64)
    np.cumsum(np.bincount(probe_rows, minlength=len(live)), out=offsets[1:])
    return Matches(offsets, positions[matched])


class LinearScan(WindowIndex):
    """All rows in arrival order. Tests compare every other index with it."""

    def __init__(self, first_position: int = 0) -> None:
        self._first = first_position
        self._columns: list[Keys] = []

    def insert(self, keys: Sequence[Keys]) -> None:
        """Cost: O(rows held)."""
        if not self._columns:
            self._columns = list(keys)
            return
        self._columns = [
            Keys(np.concatenate([old.values, new.values]), np.concatenate([old.mask(), new.mask()]))
            for old, new in zip(self._columns, keys, strict=True)
        ]

    def probe_within(
        self, limit: int, intervals: Sequence[Interval], live: Live, *, ordered: bool = True
    ) -> Matches | None:
        """Cost: O(probes * rows * dimensions)."""
        if not self._columns:
            return Matches.empty(len(live))
        matches = scan(self._columns, self._first, intervals, live)
        return matches if len(matches.positions) <= limit else None

    def expire(self, below: int) -> None:
        """Cost: O(rows held)."""
        if self._columns:
            gone = min(max(below - self._first, 0), len(self._columns[0]))
            self._columns = [Keys(k.values[gone:].copy(), k.mask()[gone:].copy()) for k in self._columns]
            self._first += gone

    def snapshot(self) -> dict[str, np.ndarray]:
        """Cost: O(rows held)."""
        arrays = {"first": np.array([self._first, len(self._columns)], np.int64)}
        for d, keys in enumerate(self._columns):
            arrays[f"values.{d}"] = keys.values
            arrays[f"valid.{d}"] = keys.mask()
        return arrays

    @classmethod
    def restore(cls, snapshot: Mapping[str, np.ndarray]) -> Self:
        """Cost: O(1)."""
        first, dimensions = (int(number) for number in snapshot["first"])
        index = cls(first)
        index._columns = [Keys(snapshot[f"values.{d}"], snapshot[f"valid.{d}"]) for d in range(dimensions)]
        return index

    def check_invariants(self) -> None:
        # All dimensions have the same rows.
        assert len({len(keys) for keys in self._columns}) <= 1
