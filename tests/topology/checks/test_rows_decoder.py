"""Rows are sound before anything touches them, whatever a header or a value says."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.topology.flight.hostile_calls import ipc_messages
from tests.topology.flight.hostile_cases import batches
from topology.checks.quotas import Quotas
from topology.checks.rows_decoder import RowsDecoder, sound_schema
from topology.graph.errors import InputError, QuotaError


def decoded(messages: list[tuple[bytes, bytes]], quotas: Quotas | None = None) -> list[pa.RecordBatch]:
    decoder = RowsDecoder(quotas or Quotas())
    taken = [decoder.take(memoryview(header), memoryview(body)) for header, body in messages]
    return [rows for rows in taken if rows is not None]


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
@pytest.mark.parametrize("rows", batches(), ids=lambda rows: rows.schema.names[0])
def test_rows_of_every_layout_are_taken_as_they_are(rows: pa.RecordBatch, compression: str | None) -> None:
    assert decoded(ipc_messages(rows, compression)) == [rows]


def test_columns_lie_at_multiples_of_eight_wherever_the_message_does() -> None:
    rows = pa.record_batch({"n": np.arange(1000), "m": np.arange(1000.0)})
    (schema, _), (header, body) = ipc_messages(rows)
    for shift in range(8):
        moved = memoryview(bytes(shift) + body)[shift:]
        decoder = RowsDecoder(Quotas())
        decoder.take(memoryview(schema), memoryview(b""))
        taken = decoder.take(memoryview(header), moved)
        assert taken == rows
        assert all(column.buffers()[1].address % 8 == 0 for column in taken.columns)


def test_dictionaries_that_change_are_followed() -> None:
    first = pa.record_batch({"c": pa.array(["a", "b"]).dictionary_encode()})
    second = pa.record_batch({"c": pa.array(["x", "y", "x"]).dictionary_encode()})
    schema, *messages = ipc_messages(first)
    assert decoded([schema, *messages, *ipc_messages(second)[1:], *messages]) == [first, second, first]


class Untouchable:
    """A batch that fails validation, and does not let anyone ask for anything else."""

    def validate(self, *, full: bool) -> None:
        assert full
        raise pa.ArrowInvalid("forged")

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} of a batch that is not valid")


def test_nothing_touches_a_batch_before_it_is_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reader:
        def __init__(self, source: Any) -> None:
            self.schema = pa.schema([("n", pa.int64())])

        def read_next_batch(self) -> Untouchable:
            return Untouchable()

    monkeypatch.setattr(pa.ipc, "open_stream", Reader)
    with pytest.raises(InputError, match="the batch is damaged \\(forged\\)"):
        decoded(ipc_messages(pa.record_batch({"n": [1]})))


def test_a_batch_is_bounded_packed_and_unpacked() -> None:
    quotas = Quotas(message_bytes=10_000)
    zeros = pa.record_batch({"z": np.zeros(1250)})
    assert decoded(ipc_messages(zeros), quotas) == [zeros]
    for compression in (None, "zstd"):
        with pytest.raises(QuotaError, match="a batch of 10,008 bytes is too large: send at most 10,000"):
            decoded(ipc_messages(pa.record_batch({"z": np.zeros(1251)}), compression), quotas)


def test_dictionaries_before_the_rows_are_bounded_together() -> None:
    words = pa.array(["x" * 5000]).dictionary_encode()
    schema, dictionary, _ = ipc_messages(pa.record_batch({"c": words}))
    with pytest.raises(QuotaError, match="the dictionaries of a batch have more than 20,000 bytes"):
        decoded([schema, *[dictionary] * 5], Quotas(message_bytes=10_000))


def test_schemas_are_read_from_their_own_message_only() -> None:
    schema = pa.schema([("a", pa.int64())], metadata={"k": "v"})
    content = bytes(schema.serialize())
    assert sound_schema(content, Quotas()).equals(schema, check_metadata=True)
    rows = bytes(pa.record_batch({"a": [1]}).serialize())
    for wrong in (b"", b"x" * 100, content[:-1], content[:20], b"\0" * 8 + content[8:], rows):
        with pytest.raises(InputError):
            sound_schema(wrong, Quotas())
