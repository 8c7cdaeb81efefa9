"""PanJoin's RaP-Table: each subwindow is range-partitioned by splitters learned from the one before it."""

from __future__ import annotations

import math

import numpy as np

from indexes.kernels.columns import frozen
from indexes.kernels.compiled import kernel
from indexes.kernels.whole_numbers import check_whole_number
from indexes.one_key.band_filter import all_pass, keep_passing
from indexes.one_key.candidates import Probe
from indexes.one_key.key_index import Parameter
from indexes.one_key.subwindows import Subindex, SubwindowIndex
from indexes.pan.linked_list_table import (
    LinkedListAdaptiveTable,
    Table,
    append,
    copied_chain,
    met_in_chain,
    passing_in_chain,
    prefetch_chain,
)
from indexes.pan.rebounding_search import GROUP, rebound
from indexes.pan.splitters import adjusted, quantiles

ROWS_PER_PARTITION = 64
"""Rows per partition, unless `partitions` is given."""


class RaPTable(SubwindowIndex):
    """Range Partition Table: PanJoin, sections III-B, III-E and III-F.

    A subwindow has `partitions` ranges of keys, bounded by splitters; a batch searches these in ascending order
    (`rebounding_search`). The rows of a partition are unsorted, in a chain of a `LinkedListAdaptiveTable` whose entries
    are `sigma` times as wide as an even share. Each partition keeps its number of rows and its least and greatest key.
    When the next subwindow begins, its splitters are computed from these (`splitters.adjusted`), so that partitions
    come out even although keys are not evenly distributed.

    Cost: O(log d) to find a partition d after the one before, O(1) to insert, O(N / P) to scan the
    partitions at the ends of a band, O(1) for each row met in those between. Memory: 2 * sigma * N rows.

    It relies on a subwindow being distributed like the one before. Keys that only ever increase all go to the last
    partition, and probes then scan all of it: use `WiBPlusTree` or `BISort` for those.

    Where we depart: the paper's first subwindow spreads its splitters over the 32-bit integers, which does not help
    with 64-bit integers or floats. Ours takes them from its own rows, evenly, whenever these have doubled (O(1) more
    for each row). A subwindow with fewer rows than partitions teaches nothing, so the splitters stay.

        partitions=3, splitters 10 20      insert 12 7 31 10 25 18
        (.., 10]  7 10    (10, 20]  12 18    (20, ..)  31 25
        band 9..15: partitions 0 and 1 are scanned, 10 and 12 met
    """

    def __init__(
        self,
        subwindow: int,
        partitions: int | None = None,
        sigma: float = 1.25,
        dimensions: int = 1,
        *,
        key: int = 0,
        first_position: int = 0,
    ) -> None:
        super().__init__(subwindow, dimensions, key=key, first_position=first_position)
        if subwindow >= 2**31:
            raise ValueError(f"RaPTable: subwindow must be less than 2^31 rows, not {subwindow}; use a smaller one")
        check_whole_number("RaPTable", "partitions", partitions, optional=True)
        if not 1.0 <= sigma < math.inf:
            raise ValueError(f"RaPTable: sigma must be 1 or more (1.10 to 1.25 are usual), not {sigma}")
        self.partitions = max(1, subwindow // ROWS_PER_PARTITION) if partitions is None else partitions
        self.sigma = sigma

    def parameters(self) -> dict[str, Parameter]:
        return {"subwindow": self.subwindow, "partitions": self.partitions, "sigma": self.sigma}

    def _open(self, previous: Subindex | None) -> Subindex:
        assert previous is None or isinstance(previous, PartitionedSubwindow)
        return PartitionedSubwindow(self.subwindow, self.partitions, self.sigma, previous)


class PartitionedSubwindow(Subindex):
    """The partitions of one subwindow. Without a predecessor it learns its splitters from its own rows."""

    def __init__(self, subwindow: int, partitions: int, sigma: float, previous: PartitionedSubwindow | None) -> None:
        self.subwindow = subwindow
        self.partitions = partitions
        width = max(math.ceil(subwindow / partitions * sigma), -(-subwindow // partitions))
        self.storage = LinkedListAdaptiveTable(2 * partitions, width, partitions)
        self.splitters = np.empty(partitions - 1, np.int64)
        self.rows = 0
        self.base = 0
        self.newest = -1
        self.learning = previous is None
        self._learn_at = 1
        if previous is not None:
            self.splitters[:] = previous.next_splitters()

    @property
    def nbytes(self) -> int:
        return self.splitters.nbytes + self.storage.nbytes

    def next_splitters(self) -> np.ndarray:
        """The splitters for the subwindow after this one. Cost: O(P log P)."""
        if self.rows < self.partitions:
            return self.splitters
        own = slice(0, self.partitions)
        return adjusted(self.storage.counts[own], self.storage.lowest[own], self.storage.highest[own])

    def add(self, keys: np.ndarray, positions: np.ndarray) -> None:
        """Cost: O(1) for each row, and O(log P) at most to find its partition."""
        self.base = int(positions[0]) // self.subwindow * self.subwindow
        self.newest = int(positions.max())
        self.rows += len(keys)
        if self.learning and self.rows >= self._learn_at:
            keys, positions = self._learn(keys, positions)
        _add(frozen(self.splitters), self.storage.table, keys, positions, self.base)

    def _learn(self, keys: np.ndarray, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Remove all rows, choose splitters for them and the new rows together, and return all these rows."""
        held_keys, held_positions = self.entries()
        keys, positions = np.concatenate([held_keys, keys]), np.concatenate([held_positions, positions])
        order = np.argsort(keys, kind="stable")
        keys, positions = keys[order], positions[order]
        self.splitters[:] = quantiles(keys, self.partitions)
        self.storage.clear(self.partitions)
        self._learn_at = 2 * len(keys)
        return frozen(keys), frozen(positions)

    def visit(
        self, band: int, used: int, positions: np.ndarray, ends: np.ndarray, probe: Probe
    ) -> tuple[int, int, int]:
        """Cost: O(N / P) for each band, and O(1) for each row in it."""
        arguments = frozen(self.splitters), self.storage.table, self.base, self.newest
        return _visit(band, used, positions, ends, probe, *arguments)

    def entries(self) -> tuple[np.ndarray, np.ndarray]:
        keys, rows = self.storage.all_contents()
        return keys, rows + np.int64(self.base)

    def check_invariants(self) -> None:
        # Splitters ascend; between equal ones partitions are empty.
        assert (self.splitters[1:] >= self.splitters[:-1]).all()
        for partition in range(self.partitions):
            keys, _ = self.storage.contents(partition)
            # Each key is above the splitter before its partition, and not above the one after it.
            assert partition == 0 or (keys > self.splitters[partition - 1]).all()
            assert partition == self.partitions - 1 or (keys <= self.splitters[partition]).all()
        # There are never more than 2P entries, and chains are well formed.
        assert self.storage.used <= self.storage.entries == 2 * self.partitions
        self.storage.check_chains(list(range(self.partitions)))
        # All rows are in the partitions.
        assert self.storage.counts[: self.partitions].sum() == self.rows


@kernel
def _add(splitters: np.ndarray, table: Table, keys: np.ndarray, positions: np.ndarray, base: int) -> None:
    partition = 0
    begin = 0
    while begin < keys.size:
        partition = rebound(splitters, partition, splitters.size, keys[begin], False)
        end = begin + 1
        if partition == splitters.size:
            end = keys.size
        else:
            while end < keys.size and keys[end] <= splitters[partition]:
                end += 1
        append(table, partition, keys, positions, base, begin, end)
        begin = end


@kernel
def _candidates(
    band: int,
    used: int,
    positions: np.ndarray,
    ends: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
    splitters: np.ndarray,
    table: Table,
    base: int,
) -> tuple[int, int]:
    """Write the rows in the bands from `band` on, up to one whose partitions may not fit. Returns (that band, used)."""
    # Fields of a tuple are counted references: reading them once keeps the counting out of the loop.
    keys, rows, following, count, width = table.keys, table.rows, table.following, table.counts, table.width
    room = positions.size
    partitions = np.empty(GROUP, np.int64)
    partition = 0
    for b in range(band, lows.size):
        low, high = lows[b], highs[b]
        place = (b - band) % GROUP
        if place == 0:
            for k in range(min(GROUP, lows.size - b)):
                partition = rebound(splitters, partition, splitters.size, lows[b + k], False)
                partitions[k] = partition
                prefetch_chain(keys, width, partition)
        first = partitions[place]
        p = first
        before = used
        while True:
            held = count[p]
            if used + held > room:
                return b, before
            last = p == splitters.size or splitters[p] >= high
            if last or p == first:
                used = met_in_chain(keys, rows, following, width, p, held, low, high, base, positions, used)
            else:
                used = copied_chain(rows, following, width, p, held, base, positions, used)
            if last:
                break
            p += 1
        ends[b] = used
    return lows.size, used


@kernel
def _visit(
    band: int,
    used: int,
    positions: np.ndarray,
    ends: np.ndarray,
    probe: Probe,
    splitters: np.ndarray,
    table: Table,
    base: int,
    newest: int,
) -> tuple[int, int, int]:
    whole = all_pass(probe, base, newest)
    lows, highs = probe.low, probe.high
    while True:
        begin, first = used, band
        band, used = _candidates(first, used, positions, ends, lows, highs, splitters, table, base)
        if not whole:
            used = keep_passing(probe, first, band, begin, positions, ends)
        if band == lows.size:
            return band, used, used
        before = used
        partition = rebound(splitters, 0, splitters.size, lows[band], False)
        last = rebound(splitters, partition, splitters.size, highs[band], False)
        for p in range(partition, last + 1):
            used = passing_in_chain(table, p, lows[band], highs[band], base, positions, used, probe, probe.row[band])
        if used > positions.size:
            return band, before, used
        ends[band] = used
        band += 1
