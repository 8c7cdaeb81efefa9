"""Threads fill and probe a PIM-Tree at once: a probe misses no inserted row and reports no other."""

from __future__ import annotations

import threading
from itertools import count
from typing import Literal

import numpy as np
import pytest

from indexes import Interval, Keys, Live
from indexes.trees.pim_tree import PIMTree

BATCH = 400
ROUNDS = 6
BATCHES = 60
"""In each round."""


class Crowd:
    """Threads that insert, probe and expire one index, and the errors that they find.

    The keys of all positions are drawn in advance. A thread that inserts takes the next batch and sets its flag when
    the insert has returned; a probe reads the flags before it begins. No probe of a round includes positions below the
    round's first, so these may expire at any moment.
    """

    def __init__(self, index: PIMTree, columns: np.ndarray, seed: int) -> None:
        self.index = index
        self.columns = columns
        self.seed = seed
        self.inserted = np.zeros(columns.shape[1] // BATCH, np.bool_)
        self.wrong: list[str] = []
        self.probes = 0

    def round(self, number: int) -> None:
        batches = count(number * BATCHES)
        last = (number + 1) * BATCHES
        first = max(0, last - 2 * BATCHES) * BATCH
        working = [True, True]

        def insert(which: int) -> None:
            try:
                for batch in batches:
                    if batch >= last:
                        break
                    rows = slice(batch * BATCH, (batch + 1) * BATCH)
                    self.index.insert_at(rows.start, [Keys(column[rows]) for column in self.columns])
                    self.inserted[batch] = True
                    if batch % 16 == 0:
                        self.index.expire(first)
            finally:
                working[which] = False

        def probe(which: int) -> None:
            rng = np.random.default_rng([self.seed, number, which])
            while any(working):
                self.probe(rng, first)

        tasks = [(insert, 0), (insert, 1), (probe, 2), (probe, 3)]
        threads = [threading.Thread(target=task, args=(which,)) for task, which in tasks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def probe(self, rng: np.random.Generator, first: int) -> None:
        probes = 50
        low = np.stack([rng.choice(column, probes) for column in self.columns])
        high = low + rng.choice([0, 1 << 8, 1 << 12], low.shape)
        live = Live(np.full(probes, first), np.full(probes, self.columns.shape[1]))
        there = np.repeat(self.inserted, BATCH)
        matches = self.index.probe([Interval(*bounds) for bounds in zip(low, high, strict=True)], live)
        for row in range(probes):
            met = matches.positions[matches.offsets[row] : matches.offsets[row + 1]]
            true = np.ones(self.columns.shape[1], np.bool_)
            true[:first] = False
            for column, least, most in zip(self.columns, low[:, row], high[:, row], strict=True):
                true &= (column >= least) & (column <= most)
            if not true[met].all():
                self.wrong.append("a row was met that does not match")
            if len(np.unique(met)) < len(met):
                self.wrong.append("a row was met twice")
            if not np.isin(np.flatnonzero(true & there), met).all():
                self.wrong.append("a row was missed that had been inserted before")
        self.probes += 1


@pytest.mark.parametrize("merge", ["non-blocking", "blocking"])
@pytest.mark.parametrize(("dimensions", "depth"), [(1, 0), (1, 2), (2, 1)])
def test_threads_that_insert_and_probe_at_once_meet_what_is_there(
    dimensions: int, depth: int, merge: Literal["non-blocking", "blocking"]
) -> None:
    seed = 10 * dimensions + depth
    columns = np.random.default_rng(seed).integers(0, 1 << 16, (dimensions, ROUNDS * BATCHES * BATCH))
    index = PIMTree(2 * BATCHES * BATCH, 1 / 8, depth, 8, 8, merge, dimensions)
    crowd = Crowd(index, columns, seed)
    for number in range(ROUNDS):
        crowd.round(number)
        assert crowd.wrong == []
        index.check_invariants()
        held = index.snapshot()["positions"]
        first = max(0, number - 1) * BATCHES * BATCH
        np.testing.assert_array_equal(np.sort(held), np.arange(first, (number + 1) * BATCHES * BATCH))
    assert crowd.probes > ROUNDS
