"""The partitioned merge tree: ranges that adapt, batches of any size, non-blocking merges."""

from __future__ import annotations

import threading
import tracemalloc
from typing import Literal

import numpy as np
import pytest

from indexes import Interval, Keys, LinearScan, Live
from indexes.trees.breadth_first_tree import BreadthFirstTree
from indexes.trees.pim_tree import PIMTree
from tests.indexes.generated import assert_same


def column(*numbers: int) -> list[Keys]:
    return [Keys(np.array(numbers, np.int64))]


def test_it_merges_as_the_example_says() -> None:
    index = PIMTree(16, 1 / 2, 1, 3, 3)
    index.insert(column(2, 4, 4, 5, 7, 8, 9, 9, 11))
    index.insert(column(3, 10, 6, 4))
    np.testing.assert_array_equal(index.recent, [2, 1, 1])
    index.insert(column(1, 1, 2, 7))
    assert index.settled == 17
    np.testing.assert_array_equal(index.recent, [0, 0])


def test_partitions_divide_new_rows_evenly_and_adapt_when_keys_drift() -> None:
    rng = np.random.default_rng(3)
    index = PIMTree(4096, 1 / 4, 2, 8, 8)

    def largest_share(center: float) -> float:
        index.insert([Keys(rng.normal(center, 1.0, 1000))])
        share = float(index.recent.max() / index.recent.sum())
        index.merge()
        index.expire(index.next_position - 4096)
        return share

    for _ in range(5):
        settled_share = largest_share(0.0)
    partitions = len(index.recent)
    assert partitions >= 4
    assert settled_share < 2 / partitions
    # All keys lie above those held, so one partition gets them all; the merges after that divide them anew.
    assert largest_share(100.0) == 1.0
    for _ in range(5):
        settled_share = largest_share(100.0)
    assert settled_share < 2 / len(index.recent)


def test_equal_keys_leave_ranges_empty_and_nothing_is_lost() -> None:
    index, reference = PIMTree(64, 1 / 2, 2, 3, 2), LinearScan()
    for key in (5, 5, 5, 4, 6):
        batch = [Keys(np.full(20, key))]
        index.insert(batch)
        reference.insert(batch)
        index.check_invariants()
    low = np.array([4, 5, 6, 4, 0, -(2**63)])
    high = np.array([4, 5, 6, 6, 3, 2**63 - 1])
    assert_same(*(one.probe([Interval(low, high)], Live.everything(6)) for one in (index, reference)))


def test_a_late_row_that_has_expired_takes_no_living_row_s_place() -> None:
    index = PIMTree(16, 1.0, 1, 3, 3, dimensions=2)
    index.insert_at(16, [Keys(np.arange(16)), Keys(np.arange(16))])
    index.expire(16)
    index.insert_at(0, [Keys(np.arange(16)), Keys(np.full(16, -1))])
    everything = Interval(np.array([0]), np.array([20]))
    matches = index.probe([everything, everything], Live(np.array([16]), np.array([32])))
    np.testing.assert_array_equal(matches.positions, np.arange(16, 32))


@pytest.mark.parametrize("rows", [8, 9, 64, 1000])
def test_a_batch_may_be_larger_than_the_partitions_and_than_the_window(rows: int) -> None:
    rng = np.random.default_rng(rows)
    index, reference = PIMTree(64, 1 / 8, 1, 4, 4), LinearScan()
    for _ in range(3):
        batch = [Keys(rng.integers(0, 50, rows))]
        index.insert(batch)
        reference.insert(batch)
        index.check_invariants()
        low = rng.integers(0, 50, 20)
        assert_same(*(one.probe([Interval(low, low + 3)], Live.everything(20)) for one in (index, reference)))


class HeldMerge:
    """Holds a merge in its first phase, before the new tree is built, until it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.let_go = threading.Event(), threading.Event()
        merged = BreadthFirstTree.merged

        def held(*args: object) -> BreadthFirstTree:
            self.reached.set()
            assert self.let_go.wait(30)
            return merged(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(BreadthFirstTree, "merged", held)


def positions_of(index: PIMTree, low: int, high: int) -> list[int]:
    return index.probe([Interval(np.array([low]), np.array([high]))], Live.everything(1)).positions.tolist()


def test_others_insert_and_probe_while_a_merge_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    index = PIMTree(40, 1 / 2, 1, 3, 3)
    index.insert([Keys(np.arange(100, 125))])
    index.insert([Keys(np.arange(19))])
    merge = HeldMerge(monkeypatch)
    merger = threading.Thread(target=index.insert, args=([Keys(np.array([7, 8]))],))
    merger.start()
    assert merge.reached.wait(30)
    # Rows of the old tree, of the partitions being merged and of the batch that began the merge are met.
    assert positions_of(index, 100, 101) == [0, 1]
    assert positions_of(index, 7, 8) == [32, 33, 44, 45]
    index.insert([Keys(np.array([8, 100, 500]))])
    assert positions_of(index, 8, 8) == [33, 45, 46]
    assert positions_of(index, 100, 900) == [*range(25), 47, 48]
    merge.let_go.set()
    merger.join()
    assert positions_of(index, 7, 8) == [32, 33, 44, 45, 46]
    assert index.settled == 46
    np.testing.assert_array_equal(index.recent.sum(), 3)
    index.check_invariants()


@pytest.mark.parametrize("batch", [2, 20])
def test_an_insert_returns_while_the_merge_that_it_began_goes_on(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the batch is as large as the limit: its rows can be met at once."""
    index = PIMTree(40, 1 / 2, 1, 3, 3, at_once=0)
    merge = HeldMerge(monkeypatch)
    index.insert([Keys(np.arange(18))])
    index.insert([Keys(np.arange(batch) + 100)])
    assert merge.reached.wait(30)
    assert positions_of(index, 17, 101) == [17, 18, 19]
    index.insert([Keys(np.arange(3) + 17)])
    assert positions_of(index, 17, 17) == [17, 18 + batch]
    assert index.counters() == {"merges": 0, "probes_beside_merge": 2}
    merge.let_go.set()
    index.check_invariants()
    assert index.counters() == {"merges": 1, "probes_beside_merge": 2}
    assert index.settled == 18 + batch


def test_what_interrupts_a_merge_beside_the_join_is_raised_by_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    index = PIMTree(16, 1 / 2, at_once=0)

    def no_memory(*_: object) -> None:
        raise MemoryError("planted")

    monkeypatch.setattr(BreadthFirstTree, "merged", no_memory)
    index.insert([Keys(np.arange(10))])
    with pytest.raises(RuntimeError, match=r"PIMTree: a merge was interrupted.*restore") as raised:
        index.snapshot()
    assert isinstance(raised.value.__cause__, MemoryError)
    with pytest.raises(RuntimeError, match="a merge was interrupted"):
        index.insert([Keys(np.arange(10))])


@pytest.mark.parametrize("at_once", [0, 1000])
def test_inserts_wait_when_the_new_partitions_are_full_before_the_merge_is_done(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = PIMTree(40, 1 / 2, 1, 3, 3, at_once=at_once)
    merge = HeldMerge(monkeypatch)
    threads = [threading.Thread(target=index.insert, args=([Keys(np.arange(20))],)) for _ in range(3)]
    threads[0].start()
    assert merge.reached.wait(30)
    if at_once == 0:
        threads[0].join()
    for thread in threads[1:]:
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
    merge.let_go.set()
    for thread in threads:
        thread.join()
    assert len(positions_of(index, 0, 19)) == 60
    index.check_invariants()


def test_probes_wait_for_a_blocking_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    index = PIMTree(40, 1 / 2, 1, 3, 3, "blocking")
    merge = HeldMerge(monkeypatch)
    merger = threading.Thread(target=index.insert, args=([Keys(np.arange(20))],))
    merger.start()
    assert merge.reached.wait(30)
    met: list[int] = []
    prober = threading.Thread(target=lambda: met.extend(positions_of(index, 0, 19)))
    prober.start()
    prober.join(0.05)
    assert prober.is_alive()
    merge.let_go.set()
    merger.join()
    prober.join()
    assert len(met) == 20
    assert index.counters() == {"merges": 1, "probes_beside_merge": 0}


def test_the_arrays_of_a_tree_that_a_probe_still_asks_are_not_written_over() -> None:
    index = PIMTree(40, 1 / 2, 1, 3, 3)

    def slide(key: int) -> BreadthFirstTree:
        index.insert([Keys(np.arange(20) + key)])
        index.expire(index.next_position - 40)
        return index._view.settled

    for i in range(4):
        before = slide(i)
    # Nobody asks the tree before any more, so its arrays serve for the next but one.
    slide(4)
    assert np.shares_memory(slide(5).arrays.keys, before.arrays.keys)
    view = index._open_view()
    held = [array.copy() for array in view.settled.entries()]
    for i in range(4):
        slide(50 + i)
    for now, then in zip(view.settled.entries(), held, strict=True):
        np.testing.assert_array_equal(now, then)
    index._close_view(view)
    index.check_invariants()


def test_a_window_that_slides_does_not_grow() -> None:
    rng = np.random.default_rng(1)
    index = PIMTree(1000, 1 / 8, 1, 8, 4)
    sizes = []
    for i in range(2000):
        index.insert([Keys(rng.integers(0, 2**40, 37))])
        index.expire((i + 1) * 37 - 1000)
        sizes.append(index.nbytes)
    assert max(sizes[100:]) <= 1.02 * max(sizes[:100])
    assert index.settled <= 1000 + index.recent_limit
    index.check_invariants()


def test_nbytes_is_what_was_allocated() -> None:
    rng = np.random.default_rng(2)
    batches = [[Keys(rng.integers(0, 2**40, 5000)), Keys(rng.integers(0, 9, 5000))] for _ in range(30)]

    def fill() -> PIMTree:
        index = PIMTree(50_000, 1 / 4, dimensions=2)
        for i, batch in enumerate(batches):
            index.insert(batch)
            index.expire((i + 1) * 5000 - 50_000)
        index.check_invariants()  # it waits for the merge
        return index

    fill()
    tracemalloc.start()
    index = fill()
    measured, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert measured == pytest.approx(index.nbytes, rel=0.1)


@pytest.mark.parametrize("merge", ["non-blocking", "blocking"])
def test_an_interrupted_merge_leaves_no_thread_waiting(
    merge: Literal["non-blocking", "blocking"], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = PIMTree(16, 1 / 2, merge=merge)
    index.insert([Keys(np.arange(5))])

    def no_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(BreadthFirstTree, "merged", no_memory)
    with pytest.raises(MemoryError):
        index.insert([Keys(np.arange(5))])
    with pytest.raises(RuntimeError, match=r"PIMTree: a merge was interrupted.*restore"):
        index.insert([Keys(np.arange(10))])
    with pytest.raises(RuntimeError, match=r"PIMTree: a merge was interrupted.*restore"):
        index.probe([Interval(np.array([0]), np.array([9]))], Live.everything(1))


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="PIMTree: window"):
        PIMTree(0)
    with pytest.raises(ValueError, match="PIMTree: merge_ratio"):
        PIMTree(8, 0)
    with pytest.raises(ValueError, match="PIMTree: insertion_depth"):
        PIMTree(8, insertion_depth=-1)
    with pytest.raises(ValueError, match="PIMTree: immutable_fanout"):
        PIMTree(8, immutable_fanout=1)
    with pytest.raises(ValueError, match="PIMTree: merge must be"):
        PIMTree(8, merge="never")  # type: ignore[arg-type]
