"""Messages are immutable, count their own bytes, and travel between processes."""

import pickle
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pyarrow as pa
import pytest

from topology import Barrier, Batch, End, Punctuation, UnpackedBatch, Watermark
from topology.graph.messages import CONTROL_BYTES, Message, message_bytes, rows_bytes


@dataclass
class Numbers:
    """Stands for rows, and counts how often it is packed."""

    values: list[int]
    packed: int = 0

    @property
    def num_rows(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        return 8 * len(self.values)

    def to_arrow(self) -> pa.RecordBatch:
        self.packed += 1
        return pa.record_batch({"a": self.values})


MESSAGES: list[Message] = [
    UnpackedBatch("default", Numbers([1, 2, 3]), first=7, born=0.5, labels=(1, 2)),
    Batch("default", pa.record_batch({"a": [1, 2, 3]}), first=7, source="R-0", times=(1, 3), born=0.5),
    Watermark(12, "default", "R-0"),
    Watermark(None),
    Punctuation(4, 0.25),
    Barrier(3),
    End("default", "R-0"),
    End(),
]


def test_the_end_of_a_batch_is_the_number_after_its_last_row() -> None:
    batch = MESSAGES[1]
    assert isinstance(batch, Batch)
    assert (batch.first, batch.end) == (7, 10)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_messages_survive_a_trip_to_another_process(message: Message) -> None:
    assert pickle.loads(pickle.dumps(message)) == message


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_messages_cannot_be_changed(message: Message) -> None:
    with pytest.raises((FrozenInstanceError, TypeError, AttributeError)):
        message.stream = "other"  # type: ignore[misc, union-attr]


def test_control_messages_count_a_little_and_batches_their_rows() -> None:
    assert message_bytes(End()) == CONTROL_BYTES
    rows = pa.record_batch({"a": np.arange(1_000_000)})
    assert message_bytes(Batch("default", rows)) == CONTROL_BYTES + 8_000_000


def test_a_slice_counts_its_own_rows_and_not_the_table_it_was_cut_from() -> None:
    table = pa.record_batch({"a": np.arange(1_000_000), "s": pa.array(["xyz"] * 1_000_000)})
    part = table.slice(500_000, 1_000)
    assert rows_bytes(part) < 20_000
    assert sum(rows_bytes(table.slice(start, 1_000)) for start in range(0, 1_000_000, 1_000)) < 1.1 * table.nbytes


def test_an_empty_dense_union_inside_large_rows_has_a_size() -> None:
    """Arrow's own figure for such rows, once they have been sent somewhere, is a segmentation fault."""
    nothing = pa.UnionArray.from_dense(
        pa.array([], pa.int8()), pa.array([], pa.int32()), [pa.array([], pa.int64()), pa.array([], pa.string())]
    )
    lists = pa.ListArray.from_arrays(pa.array([0, 0], pa.int32()), nothing)
    out = pa.BufferOutputStream()
    rows = pa.record_batch({"lists": lists, "text": ["x" * 400_000]})
    with pa.ipc.new_stream(out, rows.schema) as stream:
        stream.write_batch(rows)
    received = pa.ipc.open_stream(out.getvalue()).read_next_batch()
    assert 400_000 <= rows_bytes(received) < 410_000


def test_a_batch_is_packed_when_its_rows_are_asked_for_and_then_once() -> None:
    numbers = Numbers([4, 5])
    batch = UnpackedBatch("default", numbers, first=3)
    again = batch.with_labels(9)
    assert (batch.num_rows, batch.end, batch.nbytes, again.labels) == (2, 5, CONTROL_BYTES + 16, (9,))
    assert numbers.packed == 0
    assert batch.rows is batch.rows
    assert batch == Batch("default", pa.record_batch({"a": [4, 5]}), first=3)
    assert batch != again
    assert numbers.packed == 2  # once for each of the two batches
