"""The ring of filtering keys when rows come in any order of positions."""

from __future__ import annotations

import numpy as np

from indexes.trees.shared_row_columns import SharedRowColumns


def test_rows_in_any_order_are_found_by_position() -> None:
    rng = np.random.default_rng(1)
    rows = SharedRowColumns(2, 0)
    for first in rng.permutation(np.arange(0, 400, 8)).tolist():
        places = np.arange(first, first + 8)
        rows.append(first, [places * 3, places * 5], 0)
    everything = np.arange(400)
    np.testing.assert_array_equal(rows.at(everything), [everything * 3, everything * 5])


def test_a_late_row_that_has_expired_takes_no_place() -> None:
    rows = SharedRowColumns(1, 0)
    rows.append(16, [np.arange(16, 32)], 16)
    rows.append(8, [np.full(10, -1)], 16)
    np.testing.assert_array_equal(rows.at(np.arange(16, 32))[0], [-1, -1, *range(18, 32)])


def test_a_reader_keeps_its_array_when_the_ring_moves() -> None:
    rows = SharedRowColumns(1, 1 << 40)
    places = np.arange(1 << 40, (1 << 40) + 100)
    rows.append(1 << 40, [places[:10]], 1 << 40)
    held, mask = rows.values, rows.mask
    rows.append((1 << 40) + 10, [places[10:]], 1 << 40)
    assert rows.values is not held
    np.testing.assert_array_equal(held[0, places[:10] & mask], places[:10])
    np.testing.assert_array_equal(rows.at(places)[0], places)


def test_room_goes_back_when_rows_have_expired() -> None:
    rows = SharedRowColumns(1, 0)
    rows.append(0, [np.arange(1000)], 0)
    wide = rows.nbytes
    rows.append(1000, [np.arange(10)], 1000)
    assert rows.nbytes < wide / 8
    np.testing.assert_array_equal(rows.at(np.arange(1000, 1010))[0], np.arange(10))
