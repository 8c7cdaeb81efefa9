from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from indexes.kernels.columns import frozen
from indexes.pan.linked_list_table import LinkedListAdaptiveTable, append, copied_chain, give_back, met_in_chain
from tests.indexes.generated import seeds, without_deadline


def put(storage: LinkedListAdaptiveTable, chain: int, keys: list[int], first_row: int = 0) -> None:
    rows = np.arange(first_row, first_row + len(keys), dtype=np.int64)
    append(storage.table, chain, frozen(np.array(keys, np.int64)), frozen(rows), 0, 0, len(keys))


@without_deadline
@given(seeds, st.integers(1, 60), st.integers(1, 9), st.sampled_from([1.0, 1.1, 1.25, 3.0]))
def test_never_more_than_two_entries_for_each_partition(seed: int, rows: int, partitions: int, sigma: float) -> None:
    rng = np.random.default_rng(seed)
    storage = LinkedListAdaptiveTable(2 * partitions, math.ceil(rows / partitions * sigma), partitions)
    favourite = rng.integers(0, partitions)
    held = 0
    while held < rows:
        batch = int(rng.integers(1, rows - held + 1))
        chain = int(favourite if rng.random() < 0.5 else rng.integers(0, partitions))
        put(storage, chain, sorted(rng.integers(-5, 5, batch).tolist()), held)
        held += batch
        assert storage.used <= 2 * partitions
        storage.check_chains(list(range(partitions)))
    _, found = storage.all_contents()
    assert sorted(found.tolist()) == list(range(rows))


def test_full_partitions_alone_need_no_reserved_entry() -> None:
    storage = LinkedListAdaptiveTable(8, 4, 4)
    for chain in range(4):
        put(storage, chain, [1, 2, 3, 4], 4 * chain)
    assert storage.used == 4


def test_a_chain_is_read_in_bands_and_as_a_whole() -> None:
    storage = LinkedListAdaptiveTable(6, 2, 2)
    put(storage, 0, [1, 5, 7], 10)
    put(storage, 1, [9], 20)
    put(storage, 0, [2, 6], 30)
    found = np.zeros(20, np.int64)
    table = storage.table
    bounds = (0, 5, 2, 6, 100)
    used = met_in_chain(table.keys, table.rows, table.following, table.width, *bounds, found, 0)
    assert sorted(found[:used].tolist()) == [111, 130, 131]
    used = copied_chain(table.rows, table.following, table.width, 0, 5, 100, found, 0)
    assert sorted(found[:used].tolist()) == [110, 111, 112, 130, 131]


def test_entries_given_back_are_used_again_and_growing_keeps_rows() -> None:
    storage = LinkedListAdaptiveTable(3, 2, 1)
    put(storage, 0, [1, 2, 3])
    give_back(storage.table, storage.chain(0)[1])
    storage.following[0] = -1
    storage.last[0], storage.counts[0], storage.highest[0] = 0, 2, 2
    storage.check_chains([0])
    put(storage, 0, [4, 5, 6], 3)
    assert storage.used == 3
    storage.grow(5)
    put(storage, 0, [7], 6)
    storage.check_chains([0])
    assert storage.contents(0)[0].tolist() == [1, 2, 4, 5, 6, 7]
