"""An inlet makes a physical source of each upstream task, and of each source of an upstream input."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pytest

from topology import (
    DEFAULT_STREAM,
    UNORDERED,
    Batch,
    Emit,
    End,
    Idle,
    Inlet,
    Input,
    Message,
    Origin,
    OutOfOrderError,
    SchemaError,
    Task,
    TaskContext,
    Watermark,
)

BOLT, OTHER, INPUT, LAST = Origin("bolt", 0, 0), Origin("bolt", 1, 1), Origin("in", 0, 2), Origin("in", 0, 1)


def inlet(*origins: Origin, input: Input | None = None, unordered: str = "") -> Task:
    described = Inlet(input or Input(event_time="t"), frozenset({"in"}), frozenset({unordered} - {""}))
    return described.build(TaskContext("part/R", origins=origins))


def rows(*times: int, source: str = "", first: int = 0) -> Batch:
    return Batch(DEFAULT_STREAM, pa.record_batch({"t": list(times)}), first, source)


def said(task: Task, emits: Iterable[Emit]) -> list[Message | tuple[str, int, list[int]]]:
    found: list[Message | tuple[str, int, list[int]]] = [
        (emit.message.source, emit.message.first, emit.message.rows["t"].to_pylist())
        if isinstance(emit.message, Batch)
        else emit.message
        for emit in emits
    ]
    task.check_invariants()
    return found


def announced(*sources: str) -> list[Message]:
    return [Watermark(None, DEFAULT_STREAM, source) for source in sources]


def test_all_upstream_tasks_are_announced_before_anything_else() -> None:
    task = inlet(BOLT, OTHER)
    assert said(task, task.on_idle()) == announced("bolt/0", "bolt/1")
    assert said(task, task.on_batch(rows(1, 2), OTHER)) == [("bolt/1", 0, [1, 2])]
    task = inlet(BOLT, OTHER)
    assert said(task, task.on_batch(rows(1), BOLT)) == [*announced("bolt/0", "bolt/1"), ("bolt/0", 0, [1])]


def test_each_task_has_offsets_of_its_own() -> None:
    task = inlet(BOLT, OTHER)
    said(task, task.on_idle())
    assert said(task, task.on_batch(rows(1, 2, first=7), BOLT)) == [("bolt/0", 0, [1, 2])]
    assert said(task, task.on_batch(rows(5), OTHER)) == [("bolt/1", 0, [5])]
    assert said(task, task.on_batch(rows(2), BOLT)) == [("bolt/0", 2, [2])]


def test_names_of_many_tasks_are_in_the_order_of_their_numbers() -> None:
    task = inlet(*(Origin("bolt", number, number) for number in range(11)))
    sources = [message.source for message in said(task, task.on_idle()) if isinstance(message, Watermark)]
    assert sources[0] == "bolt/00"
    assert sources[10] == "bolt/10"
    assert sources == sorted(sources)


def test_one_task_is_called_after_its_component() -> None:
    task = inlet(BOLT)
    assert said(task, task.on_batch(rows(1), BOLT)) == [*announced("bolt"), ("bolt", 0, [1])]
    assert said(task, task.on_watermark(Watermark(4), BOLT)) == [Watermark(4, DEFAULT_STREAM, "bolt")]
    assert said(task, task.on_watermark(Watermark(4, DEFAULT_STREAM, "some source"), BOLT)) == []
    assert said(task, task.on_source_idle(Idle(), BOLT)) == [Idle(DEFAULT_STREAM, "bolt")]
    assert said(task, task.on_source_end(End(DEFAULT_STREAM, "some source"), BOLT)) == []
    assert said(task, task.on_input_end(BOLT)) == [End(DEFAULT_STREAM, "bolt")]


def test_an_input_names_its_sources() -> None:
    origin = Origin("in", 0, 0)
    task = inlet(origin)
    assert said(task, task.on_idle()) == []
    assert said(task, task.on_watermark(Watermark(None, DEFAULT_STREAM, "a"), origin)) == announced("a")
    assert said(task, task.on_batch(rows(1, source="a", first=3), origin)) == [("a", 3, [1])]
    assert said(task, task.on_batch(rows(0, source="b"), origin)) == [*announced("b"), ("b", 0, [0])]
    both = [Watermark(9, DEFAULT_STREAM, "a"), Watermark(9, DEFAULT_STREAM, "b")]
    assert said(task, task.on_watermark(Watermark(9), origin)) == both
    assert said(task, task.on_source_idle(Idle(DEFAULT_STREAM, "b"), origin)) == [Idle(DEFAULT_STREAM, "b")]
    assert said(task, task.on_source_end(End(DEFAULT_STREAM, "a"), origin)) == [End(DEFAULT_STREAM, "a")]
    assert said(task, task.on_input_end(origin)) == [End(DEFAULT_STREAM, "b")]


def test_an_input_among_others_is_waited_for() -> None:
    task = inlet(BOLT, OTHER, INPUT)
    assert said(task, task.on_idle()) == announced("bolt/0", "bolt/1", "#in")
    first = said(task, task.on_batch(rows(1, source="a"), INPUT))
    assert first == [*announced("in/a"), End(DEFAULT_STREAM, "#in"), ("in/a", 0, [1])]
    task = inlet(BOLT, LAST)
    said(task, task.on_idle())
    assert said(task, task.on_source_idle(Idle(), LAST)) == [End(DEFAULT_STREAM, "#in"), Idle(DEFAULT_STREAM)]
    task = inlet(BOLT, LAST)
    said(task, task.on_idle())
    assert said(task, task.on_input_end(LAST)) == [End(DEFAULT_STREAM, "#in")]


def test_rows_that_go_backwards_are_refused_unless_watermarks_order_them() -> None:
    task = inlet(BOLT)
    said(task, task.on_batch(rows(5), BOLT))
    with pytest.raises(OutOfOrderError, match=r"stream 'part/R', source 'bolt': 't' goes backwards at row 1 \(5 is"):
        said(task, task.on_batch(rows(4), BOLT))
    task = inlet(BOLT, unordered="bolt")
    batches = [emit.message for batch in (rows(5), rows(4)) for emit in task.on_batch(batch, BOLT)]
    assert [batch.labels for batch in batches if isinstance(batch, Batch)] == [(UNORDERED,), (UNORDERED,)]
    task = inlet(BOLT, input=Input(event_time="t", disordered=True))
    assert said(task, task.on_batch(rows(5, 4), BOLT))[1:] == [("bolt", 0, [5, 4])]


def test_all_tasks_send_one_schema() -> None:
    task = inlet(BOLT, OTHER)
    said(task, task.on_batch(rows(5), BOLT))
    with pytest.raises(SchemaError, match="column 'u' is not expected"):
        said(task, task.on_batch(Batch(DEFAULT_STREAM, pa.record_batch({"t": [1], "u": [1]})), OTHER))
