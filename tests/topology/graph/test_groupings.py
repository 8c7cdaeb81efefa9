"""The law of every grouping but `All`: each row goes to exactly one task, and rows that go together keep order."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topology import (
    All,
    Batch,
    Custom,
    Direct,
    Fields,
    Global,
    Grouping,
    GroupingError,
    LocalOrShuffle,
    PartialKey,
    Shuffle,
)

quick = settings(max_examples=30, deadline=None)  # the first example may compile a kernel


def by_parity(rows: pa.RecordBatch, tasks: int) -> Any:
    return rows.column("key").to_numpy() % 2


KEEPING_EACH_ROW_ONCE = [
    Shuffle(),
    LocalOrShuffle(),
    Global(),
    Direct(),
    Fields(("key",)),
    Fields(("key", "text")),
    PartialKey(("key",)),
    Custom(by_parity),
]


def batches(keys: Iterable[Iterable[int]]) -> list[Batch]:
    """One batch per inner list; `row` numbers the rows across all of them."""
    made, first = [], 0
    for part in keys:
        values = list(part)
        rows = pa.record_batch(
            {
                "key": pa.array(values, pa.int64()),
                "text": pa.array([f"t{value}" for value in values], pa.string()),
                "row": pa.array(range(first, first + len(values)), pa.int64()),
            }
        )
        made.append(Batch("default", rows, first=first, source="s", times=(0, 1), born=2.0))
        first += len(values)
    return made


def received(grouping: Grouping, sent: list[Batch], tasks: int, **where: Any) -> dict[int, list[dict[str, Any]]]:
    partitioner = grouping.partitioner(tasks, **where)
    got: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for number, batch in enumerate(sent):
        for task, part in partitioner.split(batch, number % tasks):
            assert 0 <= task < tasks
            assert (part.stream, part.source, part.born) == (batch.stream, batch.source, batch.born)
            got[task] += part.rows.to_pylist()
    return got


cuts = st.lists(st.lists(st.integers(-3, 20), max_size=20), max_size=6)


@pytest.mark.parametrize("grouping", KEEPING_EACH_ROW_ONCE, ids=[*map(repr, KEEPING_EACH_ROW_ONCE[:-1]), "Custom"])
@quick
@given(keys=cuts, tasks=st.integers(2, 5))
def test_each_row_goes_to_one_task_and_order_is_kept(grouping: Grouping, keys: list[list[int]], tasks: int) -> None:
    sent = batches(keys)
    got = received(grouping, sent, tasks)
    everything = [row for batch in sent for row in batch.rows.to_pylist()]
    assert sorted((row for rows in got.values() for row in rows), key=lambda row: row["row"]) == everything
    for rows in got.values():
        numbers = [row["row"] for row in rows]
        assert numbers == sorted(numbers)


@quick
@given(keys=cuts, tasks=st.integers(1, 5))
def test_all_sends_every_row_to_every_task(keys: list[list[int]], tasks: int) -> None:
    sent = batches(keys)
    got = received(All(), sent, tasks)
    everything = [row for batch in sent for row in batch.rows.to_pylist()]
    assert all(got[task] == everything for task in range(tasks))


@pytest.mark.parametrize("columns", [("key",), ("text",), ("key", "text")])
@quick
@given(keys=cuts, tasks=st.integers(1, 5))
def test_fields_sends_equal_keys_to_the_same_task(columns: tuple[str, ...], keys: list[list[int]], tasks: int) -> None:
    home: dict[int, int] = {}
    for task, rows in received(Fields(columns), batches(keys), tasks).items():
        for row in rows:
            assert home.setdefault(row["key"], task) == task


def test_fields_agrees_between_producers_and_runs() -> None:
    sent = batches([range(100)])
    assert received(Fields(("key",)), sent, 4, producer=0) == received(Fields(("key",)), sent, 4, producer=3)


def test_fields_keeps_a_batch_whole_when_all_its_rows_go_to_one_task() -> None:
    (batch,) = batches([[5, 5, 5]])
    ((_, part),) = Fields(("key",)).partitioner(4).split(batch, None)
    assert part is batch


def test_shuffle_gives_every_task_an_equal_share_of_the_batches() -> None:
    partitioner = Shuffle().partitioner(3)
    shares = Counter(task for batch in batches([[1]] * 12) for task, _ in partitioner.split(batch, None))
    assert shares == {0: 4, 1: 4, 2: 4}


def test_shuffling_producers_begin_with_different_tasks() -> None:
    (batch,) = batches([[1]])
    assert [next(Shuffle().partitioner(3, producer).split(batch, None))[0] for producer in range(3)] == [0, 1, 2]


def test_local_or_shuffle_stays_on_the_machine_where_it_can() -> None:
    sent = batches([[1]] * 6)
    assert set(received(LocalOrShuffle(), sent, 4, local=(1, 3))) == {1, 3}
    assert set(received(LocalOrShuffle(), sent, 4)) == {0, 1, 2, 3}


def test_global_sends_everything_to_the_first_task() -> None:
    assert set(received(Global(), batches([range(50)]), 4)) == {0}


def test_direct_follows_the_producer() -> None:
    (batch,) = batches([[1]])
    assert [task for task, _ in Direct().partitioner(4).split(batch, 2)] == [2]


@pytest.mark.parametrize("chosen", [None, -1, 4])
def test_direct_without_a_valid_task_says_how_to_name_one(chosen: int | None) -> None:
    (batch,) = batches([[1]])
    with pytest.raises(GroupingError, match=r"from 0 to 3 with Emit\(batch, to=\.\.\.\)"):
        list(Direct().partitioner(4).split(batch, chosen))


@quick
@given(keys=cuts, tasks=st.integers(1, 6))
def test_partial_key_uses_at_most_two_tasks_per_key(keys: list[list[int]], tasks: int) -> None:
    homes: dict[int, set[int]] = defaultdict(set)
    for task, rows in received(PartialKey(("key",)), batches(keys), tasks).items():
        for row in rows:
            homes[row["key"]].add(task)
    assert all(len(tasks_of_key) <= 2 for tasks_of_key in homes.values())


def test_partial_key_balances_a_key_that_fields_would_pile_on_one_task() -> None:
    sent = batches([[key] * 10 for key in [7] * 200])
    assert len(received(Fields(("key",)), sent, 4)) == 1
    shares = {task: len(rows) for task, rows in received(PartialKey(("key",)), sent, 4).items()}
    assert sorted(shares.values()) == [1000, 1000]


@pytest.mark.parametrize("answer", [[0], [0, 0, 9], [0, -1, 0], [0, 0, 0, 0]])
def test_a_custom_grouping_that_answers_nonsense_is_refused(answer: list[int]) -> None:
    (batch,) = batches([[1, 2, 3]])
    with pytest.raises(GroupingError, match=r"must give each of the 3 rows a task from 0 to 1"):
        list(Custom(lambda rows, tasks: answer).partitioner(2).split(batch, None))


@pytest.mark.parametrize("grouping", [Fields(("nope",)), PartialKey(("key", "nope"))], ids=repr)
def test_rows_without_the_grouping_column_are_refused_by_name(grouping: Grouping) -> None:
    (batch,) = batches([[1]])
    with pytest.raises(GroupingError, match=r"'nope' but have only: key, text, row"):
        list(grouping.partitioner(2).split(batch, None))


@pytest.mark.parametrize("kind", [Fields, PartialKey])
def test_one_name_alone_is_a_column_and_not_its_letters(kind: type[Fields] | type[PartialKey]) -> None:
    assert kind("word").fields == ("word",)  # type: ignore[arg-type]
    assert kind(["a", "b"]).fields == ("a", "b")  # type: ignore[arg-type]


def test_slices_with_offsets_are_grouped_by_what_they_show() -> None:
    (whole,) = batches([range(40)])
    together = received(Fields(("text",)), [whole], 3)
    apart = [Batch("default", whole.rows.slice(start, 7), source="s", born=2.0) for start in range(0, 40, 7)]
    assert received(Fields(("text",)), apart, 3) == together


def test_every_row_of_nulls_goes_to_one_task() -> None:
    rows = pa.record_batch({"key": pa.nulls(10, pa.string())})
    assert len(list(Fields(("key",)).partitioner(4).split(Batch("default", rows), None))) == 1


def test_labels_stay_with_every_part() -> None:
    rows = pa.record_batch({"key": np.arange(100)})
    parts = list(Fields(("key",)).partitioner(4).split(Batch("default", rows, labels=(1, 2)), None))
    assert len(parts) == 4
    assert all(part.labels == (1, 2) for _, part in parts)


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("grouping", [Shuffle(), LocalOrShuffle(), All(), Global(), Direct(), Fields(("key",))])
def test_tasks_that_always_get_a_batch_are_those_that_get_it(grouping: Grouping, tasks: int) -> None:
    partitioner = grouping.partitioner(tasks, producer=1)
    rows = pa.record_batch({"key": [1, 2, 3]})
    for _ in range(2):
        batch = Batch("default", rows)
        found = list(partitioner.split(batch, 0))
        if partitioner.always is not None:
            assert [task for task, _ in found] == list(partitioner.always)
            assert all(part is batch for _, part in found)
    if isinstance(grouping, All | Global):
        assert partitioner.always is not None
