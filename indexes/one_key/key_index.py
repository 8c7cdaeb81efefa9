"""What all indexes over one dimension share: keys in, bands out to a structure, filters, snapshots."""

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

    The papers' trees and tables index one attribute. A subclass keeps 64-bit integers with the
    positions of their rows, whatever the keys are (`ordered_integers`); rows that hold an invalid key
    never match and are not kept. It adds sorted batches, visits bands, and drops what has expired when
    that suits it.
    """

    def __init__(self, dimensions: int = 1, *, key: int = 0, first_position: int = 0) -> None:
        check_whole_number(type(self).__name__, "dimensions", dimensions)
        if not 0 <= key < dimensions:
            raise ValueError(f"{type(self).__name__}: key {key} is not one of the {dimensions} dimensions")
        self.dimensions = dimensions
        self.key = key
        self.next_position = first_position
        self._below = first_position
        self._rows = RowColumns(dimensions - 1) if dimensions > 1 else None
        self._others = [d for d in range(dimensions) if d != key]

    @abstractmethod
    def parameters(self) -> dict[str, Parameter]:
        """The arguments of the constructor beyond those of this class, for snapshots."""

    @abstractmethod
    def _add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        """Add rows newer than all held: int64 keys ascending, equal ones by position, and their positions."""

    @abstractmethod
    def _visits(self, probe: Probe) -> Sequence[Visit]:
        """How the parts of the structure visit the bands, of which there are some; each row is met by one part."""

    @abstractmethod
    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys and positions of all rows held, in any order; expired ones may be among them."""

    def _drop(self, below: int) -> None:
        """Positions < `below` will never be asked for again."""

    def insert(self, keys: Sequence[Keys]) -> None:
        """Cost: O(n log n) to sort the batch, and what the structure takes."""
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
        """Cost: what the structure takes to find the bands, O(candidates), O(m log m) to order a row's matches."""
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
        # Each row is kept once, with a position that was given out.
        assert len(keys) == len(positions) == len(np.unique(positions))
        assert not len(positions) or 0 <= positions.min() <= positions.max() < self.next_position
        # What was not dropped yet fits into the ring of the other dimensions.
        assert self._rows is None or self.next_position - self._below <= self._rows.mask + 1

    def _probe(self, intervals: Sequence[Interval], live: Live) -> Probe:
        first, end = live_of(live, self._below)
        # Read once: a ring that another thread grows is replaced, not changed.
        rows = self._rows.values if self._rows is not None else NO_ROWS
        others = [intervals[d] for d in self._others]
        low, high = NO_BOUNDS, NO_BOUNDS
        if others:
            low = frozen(np.stack([ordered_integers(interval.low) for interval in others]))
            high = frozen(np.stack([ordered_integers(interval.high) for interval in others]))
        negated = frozen(np.array([interval.negated for interval in others], np.bool_))
        bands = bands_of(intervals[self.key])
        return Probe(*bands, first, end, rows.shape[1] - 1, frozen(rows), low, high, negated)


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
