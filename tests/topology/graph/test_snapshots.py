"""A task's snapshot: all of its state as bytes, from which another task of the component goes on."""

from __future__ import annotations

import pyarrow as pa
import pytest

from topology import Batch, Input, MapBatches, NoSnapshotError, Origin, PassOn, Sink, Task, TaskContext

ORIGIN = Origin("in", 0, 0)


def rows(*values: int) -> Batch:
    return Batch("default", pa.record_batch({"x": list(values)}))


class Counting(Task):
    def on_batch(self, batch: Batch, origin: Origin):  # type: ignore[no-untyped-def]
        return ()


def test_a_task_without_snapshots_says_how_to_get_them() -> None:
    with pytest.raises(NoSnapshotError, match=r"Counting has no snapshot\(\)"):
        Counting().snapshot()
    with pytest.raises(NoSnapshotError, match=r"Counting has no restore\(\)"):
        Counting().restore(b"")


def test_tasks_that_pass_rows_on_have_no_state() -> None:
    task = PassOn()
    task.restore(task.snapshot())
    assert task.snapshot() == b""


def test_a_mapped_stream_goes_on_counting_its_rows() -> None:
    component = MapBatches(lambda batch: batch)
    before, after = component.build(TaskContext("map")), component.build(TaskContext("map"))
    list(before.on_batch(rows(1, 2, 3), ORIGIN))
    after.restore(before.snapshot())
    (emit,) = after.on_batch(rows(4), ORIGIN)
    assert isinstance(emit.message, Batch)
    assert emit.message.first == 3


def test_components_say_whether_their_tasks_have_snapshots() -> None:
    assert Input.snapshots
    assert Sink.snapshots
    assert MapBatches.snapshots
