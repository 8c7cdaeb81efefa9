"""A sorted list of Python integers over a window."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from sortedcontainers import SortedList

from indexes.kernels.compiled import kernel
from indexes.one_key.arrival_keys import ArrivalKeys
from indexes.one_key.candidates import Probe, Visit, passes
from indexes.one_key.key_index import KeyIndex, Parameter

BITS = 64
"""A key is shifted by so many bits to make room for a position."""

AT_ONCE = 1 << 16
"""Candidates that are converted to an array at once."""


class SortedListIndex(KeyIndex):
    """A `sortedcontainers.SortedList` of integers, each a key in its upper bits and a position in its lower bits.

    The ordered container that most Python programs would use: an approachable baseline, from no paper. It is a list
    of short sorted lists. A batch is added by one `update`, a band is read by `irange`, and expired rows are removed
    one by one or, when there are many, by building a new list of the others. All of this loops over Python objects,
    which is what the library offers.

        rows 0.. with keys 30 10 20 10        10·1  10·3  20·2  30·0       (key · position)
        band [10, 20]                         from 10·0 to 20·(2^64 - 1): positions 1 3 2
        expire(2)                             10·3  20·2

    Cost: insert O(log n) for a row, or O(n log n) for a batch of more than a quarter of the rows held; O(log n) for a
    band and O(1) for each row in it; O(log n) to remove a row. Memory: 54 to 78 bytes a row.
    """

    def __init__(self, dimensions: int = 1, *, key: int = 0, first_position: int = 0) -> None:
        super().__init__(dimensions, key=key, first_position=first_position)
        self._pairs = SortedList()
        self._arrivals = ArrivalKeys()
        self._removed = first_position

    def parameters(self) -> dict[str, Parameter]:
        return {}

    @property
    def nbytes(self) -> int:
        """Bytes of the integers and of the lists that hold them. Cost: O(n / 1000)."""
        lists, maxes = self._pairs._lists, self._pairs._maxes
        held = sum(sys.getsizeof(part) for part in lists) + sys.getsizeof(lists) + sys.getsizeof(maxes)
        # Integers differ in size with their keys; one in a thousand is a fair sample.
        sampled = sum(sys.getsizeof(pair) for pair in maxes)
        integers = sampled * len(self._pairs) // max(len(maxes), 1)
        return integers + held + self._arrivals.nbytes + (self._rows.nbytes if self._rows else 0)

    def _add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        if not len(self._pairs):
            self._removed = self._below
        self._arrivals.put(keys, positions, self._below, self.next_position)
        self._pairs.update(_pairs(keys, positions))

    def _drop(self, below: int) -> None:
        if not len(self._pairs):
            return
        keys, positions = self._arrivals.take(self._removed, below)
        self._removed = below
        if 4 * len(keys) > len(self._pairs):
            gone = set(_pairs(keys, positions))
            self._pairs = SortedList(pair for pair in self._pairs if pair not in gone)
            return
        for pair in _pairs(keys, positions):
            self._pairs.remove(pair)

    def _visits(self, probe: Probe) -> Sequence[Visit]:
        return [self._visit]

    def _visit(
        self, band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe
    ) -> tuple[int, int, int]:
        mask = (1 << BITS) - 1
        low, high = probe.low.tolist(), probe.high.tolist()
        while band < len(low):
            candidates: list[int] = []
            counted: list[int] = []
            while band + len(counted) < len(low) and len(candidates) < AT_ONCE:
                b = band + len(counted)
                candidates += [pair & mask for pair in self._pairs.irange(low[b] << BITS, (high[b] << BITS) + mask)]
                counted.append(len(candidates))
            found = np.array(candidates, np.int64)
            reached, used, needed = _keep(band, used, positions, ends, probe, found, np.array(counted, np.int64))
            if needed > len(positions):
                return reached, used, needed
            band = reached
        return band, used, used

    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        mask = (1 << BITS) - 1
        keys = np.array([pair >> BITS for pair in self._pairs], np.int64)
        return keys, np.array([pair & mask for pair in self._pairs], np.int64)

    def check_invariants(self) -> None:
        super().check_invariants()
        # The list is in order.
        self._pairs._check()
        _, positions = self._entries()
        # Expired rows are gone at once.
        assert not len(positions) or positions.min() >= self._below


def _pairs(keys: np.ndarray, positions: np.ndarray) -> list[int]:
    """Each key and its position as one integer of the same order."""
    return [(key << BITS) + position for key, position in zip(keys.tolist(), positions.tolist(), strict=True)]


@kernel
def _keep(
    band: int,
    used: int,
    positions: np.ndarray,
    ends: np.ndarray,
    probe: Probe,
    candidates: np.ndarray,
    counted: np.ndarray,
) -> tuple[int, int, int]:
    """Write the candidates of the bands from `band` on that pass; the first i + 1 bands have counted[i] of them."""
    candidate = 0
    for i in range(counted.size):
        needed = used
        while candidate < counted[i]:
            if passes(probe, probe.row[band + i], candidates[candidate]):
                if needed < positions.size:
                    positions[needed] = candidates[candidate]
                needed += 1
            candidate += 1
        if needed > positions.size:
            return band + i, used, needed
        used = needed
        ends[band + i] = used
    return band + counted.size, used, used
