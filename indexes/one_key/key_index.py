"""The base of all indexes over one key: insertion, probing by bands, filters, snapshots."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from indexes.kernels.columns import Interval, Keys, Live, Matches, frozen
from indexes.kernels.ordered_integers import ordered_integers
from indexes.kernels.radix_sort import sorted_with_order
from indexes.kernels.row_columns import RowColumns
from indexes.kernels.whole_numbers import check_whole_number
from indexes.kernels.window_index import WindowIndex
from indexes.one_key.candidates import Probe, Visit, bands_of, collect, live_of

Parameter = int | float | str | bool


class KeyIndex(WindowIndex):
    """A window index over one dimension, `key`; the other dimensions filter what it finds.

    The papers' trees and tables index one attribute. A subclass stores 64-bit integers, made from keys of any type
    (`ordered_integers`), with the positions of their rows. Rows with an invalid key never match and are not stored.
    A subclass adds sorted batches (`_add`), visits bands (`_visits`), lists its rows (`_entries`), and drops expired
    rows when that suits it (`_drop`).
    """

    def __init__(self, dimensions: int = 1, *, key: int = 0, first_position: int = 0) -> None:
        check_whole_number(type(self).__name__, "dimensions", dimensions)
        if not 0 <= key < dimensions:
            raise ValueError(f"{type(self).__name__}: key must be a dimension, 0 to {dimensions - 1}, not {key}")
        self.dimensions = dimensions
        self.key = key
        self.next_position = first_position
        self._below = first_position
        self._rows = RowColumns(dimensions - 1) if dimensions > 1 else None
        self._others = [d for d in range(dimensions) if d != key]

    @abstractmethod
    def parameters(self) -> dict[str, Parameter]:
        """The constructor's arguments beyond those of this class, for snapshots."""

    @abstractmethod
    def _add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        """Add rows newer than all held: int64 keys ascending, equal ones by position, and their positions."""

    @abstractmethod
    def _visits(self, probe: Probe) -> Sequence[Visit]:
        """How each part of the structure visits the bands (at least one); every row is in exactly one part."""

    @abstractmethod
    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys and positions of all rows held, in any order; expired rows may be among them."""

    def _drop(self, below: int) -> None:
        """Drop positions < `below` if that suits the structure: no later probe may meet them."""

    def insert(self, keys: Sequence[Keys]) -> None:
        """Cost: O(n log n) to sort the batch, plus the structure's own."""
        assert len(keys) == self.dimensions, "one key column per dimension"
        first = self.next_position
        self.next_position += len(keys[0])
        if not len(keys[0]):
            return
        if self._rows is not None:
            self._rows.append(first, [ordered_integers(keys[d].values) for d in self._others], self._below)
        integers, positions = sorted_rows(keys, self.key, first)
        if len(integers):
            self._add(integers, positions)

    def probe_within(
        self, limit: int, intervals: Sequence[Interval], live: Live, *, ordered: bool = True
    ) -> Matches | None:
        """Cost: the structure's own to find the bands, O(candidates), O(m log m) to order a row's matches."""
        assert len(intervals) == self.dimensions, "one interval per dimension"
        probe = self._probe(intervals, live)
        if not len(probe.row):
            return Matches.empty(len(live))
        return collect(self._visits(probe), probe, len(live), limit, ordered)

    def expire(self, below: int) -> None:
        """Cost: the structure's own."""
        if below > self._below:
            self._below = min(below, self.next_position)
            self._drop(self._below)

    def snapshot(self) -> dict[str, np.ndarray]:
        """Cost: O(n log n)."""
        keys, positions = self._entries()
        order = np.lexsort((positions, keys))
        order = order[positions[order] >= self._below]
        parameters = {**self.parameters(), "dimensions": self.dimensions, "key": self.key}
        arrays: dict[str, np.ndarray] = {
            "parameters": np.frombuffer(json.dumps(parameters).encode(), np.uint8),
            "state": np.array([self.next_position, self._below], np.int64),
            "keys": keys[order],
            "positions": positions[order],
        }
        if self._rows is not None:
            arrays["rows"] = self._rows.at(np.arange(self._below, self.next_position))
        return arrays

    @classmethod
    def restore(cls, snapshot: Mapping[str, np.ndarray]) -> Self:
        """Cost: as one insert of all rows."""
        index = cls(**json.loads(snapshot["parameters"].tobytes()))
        index._fill(snapshot)
        return index

    def _fill(self, snapshot: Mapping[str, np.ndarray]) -> None:
        end, below = (int(number) for number in snapshot["state"])
        self.next_position = end
        self._below = below
        if self._rows is not None and end > below:
            self._rows.append(below, list(snapshot["rows"]), below)
        if len(snapshot["keys"]):
            self._add(frozen(snapshot["keys"]), frozen(snapshot["positions"]))

    def check_invariants(self) -> None:
        keys, positions = self._entries()
        # Each row is stored once, at a position that was assigned.
        assert len(keys) == len(positions) == len(np.unique(positions))
        assert not len(positions) or 0 <= positions.min() <= positions.max() < self.next_position
        # All rows that have not expired fit into the ring of the other dimensions.
        assert self._rows is None or self.next_position - self._below <= self._rows.mask + 1

    def _probe(self, intervals: Sequence[Interval], live: Live) -> Probe:
        start, end = live_of(live, self._below)
        # Read once: when another thread grows the ring, it replaces it.
        rows = self._rows.values if self._rows is not None else NO_ROWS
        others = [intervals[d] for d in self._others]
        low, high = NO_BOUNDS, NO_BOUNDS
        if others:
            low = frozen(np.stack([ordered_integers(interval.low) for interval in others]))
            high = frozen(np.stack([ordered_integers(interval.high) for interval in others]))
        negated = frozen(np.array([interval.negated for interval in others], np.bool_))
        bands = bands_of(intervals[self.key])
        return Probe(*bands, start, end, rows.shape[1] - 1, frozen(rows), low, high, negated)


NO_ROWS = frozen(np.empty((0, 1), np.int64))
NO_BOUNDS = frozen(np.empty((0, 0), np.int64))


def sorted_rows(keys: Sequence[Keys], key: int, first: int) -> tuple[np.ndarray, np.ndarray]:
    """A batch's keys in dimension `key` as ascending integers, and the positions of their rows, counted from `first`.

    Rows with an invalid key in any dimension are left out; equal keys stay in position order. Cost: O(n log n).
    """
    valid: np.ndarray | None = None
    for column in keys:
        if column.valid is not None:
            valid = column.valid if valid is None else valid & column.valid
    integers = ordered_integers(keys[key].values)
    if valid is None:
        ordered, order = sorted_with_order(integers)
        return ordered, frozen(order + first)
    rows = np.flatnonzero(valid)
    ordered, order = sorted_with_order(integers[rows])
    return ordered, frozen(rows[order] + first)
