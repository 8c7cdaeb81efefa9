"""The wire format of messages: a channel between two tasks is one long-lived Flight stream.

One stream per channel keeps messages in order. The stream has the schema of its first batch. Batches of that schema
travel as Flight sends them, which is twice as fast as wrapping them. Batches of another schema (two inputs of a join on
one channel) travel as Arrow IPC bytes behind their header; control messages are a header alone. A header is a fixed
structure plus two names, in the application metadata that Flight carries beside each batch. There is no pickle.

Each message carries its sequence number, each stream the incarnation of its sender: see `Turnstile`.

Received columns often start at odd addresses. That is slow: Numba compiles another kernel for unaligned arrays. So the
header is padded to put the columns of large batches at a multiple of 8; columns that are not aligned are copied.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from topology.graph.errors import StaleStreamError
from topology.graph.messages import Barrier, Batch, End, Idle, Message, Punctuation, Time, Watermark

_FIXED = struct.Struct("<BBqqdII")  # kind, kind of times, sequence, number, born, bytes of stream, bytes of source
_INTEGERS = struct.Struct("<qq")
_FLOATS = struct.Struct("<dd")
_NATIVE, _EMBEDDED, _WATERMARK, _PUNCTUATION, _BARRIER, _END, _IDLE = range(7)
_NO_TIMES, _INTEGER_TIMES, _FLOAT_TIMES = range(3)
_ALIGNMENT = 8
_FRAME = 6
"""The bytes, modulo 8, that gRPC and Flight put before header and columns; see `_padded`."""


class MessageWriter:
    """The producer's end of one channel, over a Flight writer that has not started."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._schema: pa.Schema | None = None
        self._sequence = 0

    def write(self, message: Message) -> None:
        """Send one message; wait while the stream's window is full."""
        if isinstance(message, Batch):
            self._write_batch(message)
        else:
            self._writer.write_metadata(_control_header(message, self._sequence))
        self._sequence += 1

    def _write_batch(self, batch: Batch) -> None:
        rows = batch.rows
        if self._schema is None:
            self._schema = rows.schema
            self._writer.begin(rows.schema)
        if rows.schema.equals(self._schema, check_metadata=True):
            header = _batch_header(_NATIVE, batch, self._sequence)
            self._writer.write_with_metadata(rows, _padded(header, batch.nbytes))
        else:
            header = _batch_header(_EMBEDDED, batch, self._sequence)
            self._writer.write_metadata(embedded(header, rows))


class MessageReader:
    """The consumer's end of one channel, over a Flight reader: yields (sequence, message) until the stream ends."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def __iter__(self) -> Iterator[tuple[int, Message]]:
        while True:
            try:
                chunk = self._reader.read_chunk()
            except StopIteration:
                return
            yield _decode(chunk.app_metadata, chunk.data)


class Turnstile:
    """Passes each message of one channel once, in order, and only from the newest incarnation of its sender."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._incarnation = -1
        self._expected = 0
        self._lock = threading.Lock()

    def open(self, incarnation: int) -> None:
        """Start a stream of an incarnation; a newer one shuts older ones out."""
        with self._lock:
            if incarnation < self._incarnation:
                raise StaleStreamError(self._stale(incarnation))
            if incarnation > self._incarnation:
                self._incarnation = incarnation
                self._expected = 0

    def deliver(self, incarnation: int, sequence: int, put: Callable[[], object]) -> None:
        """Call `put` if this message is the next one; ignore a repeated message."""
        with self._lock:
            if incarnation != self._incarnation:
                raise StaleStreamError(self._stale(incarnation))
            if sequence < self._expected:
                return
            if sequence > self._expected:
                raise StaleStreamError(
                    f"channel {self._name}: message {sequence} came instead of message {self._expected}"
                )
            put()
            self._expected += 1

    def _stale(self, incarnation: int) -> str:
        return f"channel {self._name}: incarnation {incarnation} has been replaced by {self._incarnation}"


def embedded(header: bytes, rows: pa.RecordBatch) -> pa.Buffer:
    """Return a header followed by rows as a complete IPC stream, dictionaries included."""
    out = pa.BufferOutputStream()
    out.write(header)
    with pa.ipc.new_stream(out, rows.schema) as stream:
        stream.write_batch(rows)
    return out.getvalue()


def extracted(content: bytes) -> pa.RecordBatch:
    """Return the rows that `embedded` put behind a header."""
    with pa.ipc.open_stream(pa.py_buffer(content)) as stream:
        return stream.read_next_batch()


def aligned(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same rows with every column at an address that fits its type; copy only if needed.

    All columns of received rows lie in one piece of memory, at multiples of 8 from each other: checking one is enough.
    """
    for index in range(rows.num_columns):
        for buffer in rows.column(index).buffers():
            if buffer is not None and buffer.size:
                return _copied(rows) if buffer.address % _ALIGNMENT else rows
    return rows


def _copied(rows: pa.RecordBatch) -> pa.RecordBatch:
    if any(_has_dictionary(kind) for kind in rows.schema.types):
        return extracted(embedded(b"", rows))
    return pa.ipc.read_record_batch(rows.serialize(), rows.schema)


def _has_dictionary(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return True
    if isinstance(kind, pa.BaseExtensionType):
        return _has_dictionary(kind.storage_type)
    return any(_has_dictionary(kind.field(index).type) for index in range(kind.num_fields))


def _padded(header: bytes, body_bytes: int) -> bytes:
    """Lengthen a header so that the columns behind it start at a multiple of 8.

    Before the columns come a constant frame, the header with its length, and the length of the columns; both lengths
    are in groups of 7 bits. This holds for messages that gRPC assembles in one piece of memory: all larger ones.
    """
    length = len(header) + _ALIGNMENT
    lengths = _groups(length) + _groups(body_bytes)
    return header + bytes(-(_FRAME + len(header) + lengths) % _ALIGNMENT)


def _groups(number: int) -> int:
    return max(1, -(-number.bit_length() // 7))


def _header(
    kind: int, sequence: int, number: int, born: float, times: tuple[Time, Time] | None, stream: str, source: str
) -> bytes:
    stream_bytes, source_bytes = stream.encode(), source.encode()
    if times is None:
        times_kind, packed = _NO_TIMES, b""
    elif isinstance(times[0], int) and isinstance(times[1], int):
        times_kind, packed = _INTEGER_TIMES, _INTEGERS.pack(*times)
    else:
        times_kind, packed = _FLOAT_TIMES, _FLOATS.pack(*times)
    fixed = _FIXED.pack(kind, times_kind, sequence, number, born, len(stream_bytes), len(source_bytes))
    return b"".join((fixed, packed, stream_bytes, source_bytes))


def _batch_header(kind: int, batch: Batch, sequence: int) -> bytes:
    fixed = _header(kind, sequence, batch.first, batch.born, batch.times, batch.stream, batch.source)
    return fixed + struct.pack(f"<B{len(batch.labels)}q", len(batch.labels), *batch.labels)


def _control_header(message: Message, sequence: int) -> bytes:
    match message:
        case Watermark(time, stream, source):
            times = None if time is None else (time, time)
            return _header(_WATERMARK, sequence, 0, 0.0, times, stream, source)
        case Punctuation(seq, born):
            return _header(_PUNCTUATION, sequence, seq, born, None, "", "")
        case Barrier(checkpoint):
            return _header(_BARRIER, sequence, checkpoint, 0.0, None, "", "")
        case End(stream, source):
            return _header(_END, sequence, 0, 0.0, None, stream, source)
        case Idle(stream, source):
            return _header(_IDLE, sequence, 0, 0.0, None, stream, source)
    raise AssertionError(f"no such message: {message!r}")


def _decode(header: pa.Buffer, rows: pa.RecordBatch | None) -> tuple[int, Message]:
    content = header.to_pybytes()
    kind, times_kind, sequence, number, born, stream_bytes, source_bytes = _FIXED.unpack_from(content)
    at = _FIXED.size
    times: tuple[Time, Time] | None = None
    if times_kind != _NO_TIMES:
        times = (_INTEGERS if times_kind == _INTEGER_TIMES else _FLOATS).unpack_from(content, at)
        at += _INTEGERS.size
    stream = content[at : at + stream_bytes].decode()
    at += stream_bytes
    source = content[at : at + source_bytes].decode()
    at += source_bytes
    if kind in (_NATIVE, _EMBEDDED):
        labels = struct.unpack_from(f"<{content[at]}q", content, at + 1)
        at += 1 + 8 * len(labels)
        if kind == _EMBEDDED:
            rows = extracted(content[at:])
        assert rows is not None
        return sequence, Batch(stream, aligned(rows), number, source, times, born, labels)
    if kind == _WATERMARK:
        return sequence, Watermark(None if times is None else times[0], stream, source)
    if kind == _PUNCTUATION:
        return sequence, Punctuation(number, born)
    if kind == _BARRIER:
        return sequence, Barrier(number)
    if kind == _END:
        return sequence, End(stream, source)
    if kind == _IDLE:
        return sequence, Idle(stream, source)
    raise StaleStreamError(f"a message of unknown kind {kind}")
