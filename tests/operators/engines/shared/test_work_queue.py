"""The work queue: how steps are cut into work items."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from indexes import Interval, Keys, Live
from operators.engines.shared.work_queue import WorkQueue, WorkQueueTask
from operators.protocol.element_rows import ElementRows
from operators.protocol.limits import Limits
from topology import Batch, Emit, Origin, Punctuation

ROUTER = Origin("router", 0, 0)


def rows_at(seq: list[int], first: int) -> ElementRows:
    numbers = np.array(seq, np.int64)
    return ElementRows(
        first, numbers, (Keys(numbers * 10),), (Interval(numbers, numbers + 1),), Live(numbers - 5, numbers)
    )


def cut(task: WorkQueueTask, sides: tuple[list[int], list[int]], last: int) -> list[Emit]:
    emitted = list(task.on_batch(Limits((1, 2), (3, 4)).to_batch(), ROUTER))
    for side, seq in enumerate(sides):
        if seq:
            emitted += task.on_batch(rows_at(seq, 100).to_batch(side), ROUTER)
    return emitted + list(task.on_punctuation(Punctuation(last, 1.5), ROUTER))


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 12), st.booleans())
@settings(max_examples=60)
def test_items_hold_rows_of_both_sides_in_the_order_of_arrival(sides: list[bool], item_rows: int, wire: bool) -> None:
    begin = 50
    left = [begin + i for i, is_left in enumerate(sides) if is_left]
    right = [begin + i for i, is_left in enumerate(sides) if not is_left]
    last = begin + len(sides) - 1
    emitted = cut(WorkQueueTask(WorkQueue((False,), item_rows)), (left, right), last)
    first, *items, end = (emit.message for emit in emitted)
    assert isinstance(first, Batch)
    assert Limits.from_batch(first) == Limits((1, 2), (3, 4))
    assert end == Punctuation(last, 1.5)
    found: dict[str, list[int]] = {"probes.left": [], "probes.right": []}
    sizes: dict[int, int] = {}
    for message in items:
        assert isinstance(message, Batch)
        sent = Batch(message.stream, message.rows, first=message.first) if wire else message
        rows = ElementRows.from_batch(sent, (False,))
        assert rows.first == 100 + len(found[message.stream])
        assert rows.keys[0].values.tolist() == (rows.seq * 10).tolist()
        assert rows.live.start.tolist() == (rows.seq - 5).tolist()
        found[message.stream] += rows.seq.tolist()
        (ends,) = message.labels
        assert rows.seq[-1] <= ends < rows.seq[0] + item_rows
        sizes[ends] = sizes.get(ends, 0) + len(rows)
    assert found == {"probes.left": left, "probes.right": right}
    assert list(sizes) == sorted(sizes)
    assert all(size == item_rows for size in list(sizes.values())[:-1])
