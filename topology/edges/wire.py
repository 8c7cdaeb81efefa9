"""The wire format of an edge: frames of consecutive messages.

A frame holds all messages of a step that travel on the edge: first their headers, then the rows of the batches among
them. A header is a fixed structure plus two names. Rows are Arrow IPC messages without their schema: the schema of a
stream's rows travels once, in the frame of the first batch that has it, and gets a number. Rows with dictionaries
travel as whole IPC streams, because a dictionary may change with every batch; large batches of numbers as the memory of
their columns (`columns.py`). There is no pickle.

Kernels want their columns at multiples of 8: Numba compiles another kernel for arrays that are not aligned. So rows
begin at a multiple of 64, and a frame is received into memory that Arrow allocates, which is aligned likewise.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from topology.edges.columns import LEAST_BYTES, is_plain, memory_of, rows_in
from topology.graph.arrow_rows import embedded, extracted, has_dictionary
from topology.graph.errors import StaleStreamError
from topology.graph.messages import (
    Barrier,
    Batch,
    End,
    Idle,
    Message,
    Punctuation,
    Restore,
    Resume,
    StepEnd,
    Time,
    Watermark,
)

_FRAME = struct.Struct("<QIII")  # number of the first message, number of headers, offset of the rows, flags
_FIXED = struct.Struct("<BBHIIIQqd")  # kind, kind of times, labels, bytes of stream and source, schema, bytes of rows,
#                                       number, born
_INTEGERS = struct.Struct("<qq")
_FLOATS = struct.Struct("<dd")
_SCHEMA, _BATCH, _WHOLE_STREAM, _COLUMNS = range(4)
_WATERMARK, _PUNCTUATION, _BARRIER, _END, _IDLE, _RESUME, _RESTORE, _STEP_END = range(4, 12)
_NO_TIMES, _INTEGER_TIMES, _FLOAT_TIMES = range(3)
_ANSWER_WANTED = 1
_HAS_TIME, _HAS_BOUND = 1, 2
_ALIGNMENT = 8
_ROWS_ALIGNMENT = 64

Part: TypeAlias = "bytes | pa.Buffer"
"""A piece of a frame; large ones are the memory of an Arrow buffer."""


class FrameEncoder:
    """The producer's end of one edge: packs messages and numbers them."""

    def __init__(self) -> None:
        self._sequence = 0
        self._schemas: list[_KnownSchema] = []
        self._of_stream: dict[str, _KnownSchema] = {}

    def encode(self, messages: Sequence[Message], answer_wanted: bool = False) -> list[Part]:
        """Return the frame of the next messages, in pieces: joining them would copy the rows.

        answer_wanted: ask the consumer to acknowledge them as soon as they have been taken.
        """
        headers: list[bytes] = []
        bodies: list[Part] = []
        for message in messages:
            if isinstance(message, Batch):
                self._add_batch(message, headers, bodies)
            else:
                headers.append(_control_header(message))
        count = len(headers)
        packed = b"".join(headers)
        gap = -(_FRAME.size + len(packed)) % _ROWS_ALIGNMENT if bodies else 0
        frame = _FRAME.pack(
            self._sequence, count, _FRAME.size + len(packed) + gap, _ANSWER_WANTED if answer_wanted else 0
        )
        self._sequence += len(messages)
        return [b"".join((frame, packed, bytes(gap))), *bodies]

    def _add_batch(self, batch: Batch, headers: list[bytes], bodies: list[Part]) -> None:
        rows = batch.rows
        known = self._of_stream.get(batch.stream)
        if known is None or not rows.schema.equals(known.schema, check_metadata=True):
            known = self._number(batch.stream, rows.schema, headers, bodies)
        kind, body = known.packed(rows)
        if kind == _COLUMNS:
            bodies.append(bytes(-sum(map(len, bodies)) % _ROWS_ALIGNMENT))
        bodies += body
        headers.append(_header(kind, batch.first, batch.born, batch.times, batch.stream, batch.source, batch.labels,
                               known.number, sum(map(len, body))))  # fmt: skip

    def _number(self, stream: str, schema: pa.Schema, headers: list[bytes], bodies: list[Part]) -> _KnownSchema:
        for known in self._schemas:
            if schema.equals(known.schema, check_metadata=True):
                break
        else:
            known = _KnownSchema(len(self._schemas), schema)
            self._schemas.append(known)
            body = _padded(schema.serialize())
            bodies.append(body)
            headers.append(_header(_SCHEMA, 0, 0.0, None, "", "", (), known.number, len(body)))
        self._of_stream[stream] = known
        return known


class _KnownSchema:
    """A schema that the other end knows by its number."""

    def __init__(self, number: int, schema: pa.Schema) -> None:
        self.number = number
        self.schema = schema
        self._has_dictionary = any(has_dictionary(kind) for kind in schema.types)
        self._is_plain = is_plain(schema)

    def packed(self, rows: pa.RecordBatch) -> tuple[int, list[Part]]:
        """The rows of a batch, and in which form."""
        if self._has_dictionary:
            return _WHOLE_STREAM, [_padded(embedded(rows))]
        memory = memory_of(rows) if self._is_plain and rows.nbytes >= LEAST_BYTES else None
        return (_BATCH, [rows.serialize()]) if memory is None else (_COLUMNS, memory)


class FrameDecoder:
    """The consumer's end of one edge: unpacks the frames that one encoder made, in their order."""

    def __init__(self) -> None:
        self._schemas: list[pa.Schema] = []

    def decode(self, frame: pa.Buffer) -> tuple[int, list[Message], bool]:
        """Return the number of the first message, the messages, and whether an answer is wanted soon."""
        first, count, rows_at, flags = _FRAME.unpack_from(frame)
        bodies = frame.slice(rows_at)
        headers = frame.slice(0, rows_at).to_pybytes()
        messages: list[Message] = []
        at, start = _FRAME.size, 0
        for _ in range(count):
            kind, times_kind, labels, stream_bytes, source_bytes, schema, size, number, born = _FIXED.unpack_from(
                headers, at
            )
            at += _FIXED.size
            times: tuple[Time, Time] | None = None
            if times_kind != _NO_TIMES:
                times = (_INTEGERS if times_kind == _INTEGER_TIMES else _FLOATS).unpack_from(headers, at)
                at += _INTEGERS.size
            stream = headers[at : at + stream_bytes].decode()
            at += stream_bytes
            source = headers[at : at + source_bytes].decode()
            at += source_bytes
            if kind in (_BATCH, _WHOLE_STREAM, _COLUMNS):
                start += -start % _ROWS_ALIGNMENT if kind == _COLUMNS else 0
                body = bodies.slice(start, size)
                start += size
                if kind == _WHOLE_STREAM:
                    rows = extracted(body)
                else:
                    rows = (pa.ipc.read_record_batch if kind == _BATCH else rows_in)(body, self._schemas[schema])
                numbers = struct.unpack_from(f"<{labels}q", headers, at)
                at += 8 * labels
                messages.append(Batch(stream, rows, number, source, times, born, numbers))
            elif kind == _SCHEMA:
                self._schemas.append(pa.ipc.read_schema(bodies.slice(start, size)))
                start += size
            else:
                messages.append(_control(kind, number, born, times, stream, source))
        return first, messages, bool(flags & _ANSWER_WANTED)


def _padded(body: pa.Buffer) -> bytes:
    """The rows behind it begin at a multiple of 8, too."""
    return bytes(body) + bytes(-body.size % _ALIGNMENT)


def _header(
    kind: int,
    number: int = 0,
    born: float = 0.0,
    times: tuple[Time, Time] | None = None,
    stream: str = "",
    source: str = "",
    labels: tuple[int, ...] = (),
    schema: int = 0,
    size: int = 0,
) -> bytes:
    stream_bytes, source_bytes = stream.encode(), source.encode()
    if times is None:
        times_kind, packed = _NO_TIMES, b""
    elif isinstance(times[0], int) and isinstance(times[1], int):
        times_kind, packed = _INTEGER_TIMES, _INTEGERS.pack(*times)
    else:
        times_kind, packed = _FLOAT_TIMES, _FLOATS.pack(*times)
    fixed = _FIXED.pack(kind, times_kind, len(labels), len(stream_bytes), len(source_bytes), schema, size, number, born)
    return b"".join((fixed, packed, stream_bytes, source_bytes, struct.pack(f"<{len(labels)}q", *labels)))


def _control_header(message: Message) -> bytes:
    match message:
        case Watermark(time, stream, source, bound):
            given = (_HAS_TIME if time is not None else 0) | (_HAS_BOUND if bound is not None else 0)
            times = (time or 0, bound or 0) if given else None
            return _header(_WATERMARK, given, times=times, stream=stream, source=source)
        case StepEnd(seq, born, clock):
            return _header(_STEP_END, seq, born, None if clock is None else (float(clock), 0.0))
        case Punctuation(seq, born):
            return _header(_PUNCTUATION, seq, born)
        case Barrier(checkpoint, life):
            return _header(_BARRIER, checkpoint, stream=life)
        case Restore(Barrier(checkpoint, life)):
            return _header(_RESTORE, checkpoint, stream=life)
        case End(stream, source):
            return _header(_END, stream=stream, source=source)
        case Idle(stream, source):
            return _header(_IDLE, stream=stream, source=source)
        case Resume(sink, place, number, acknowledged, first):
            return _header(_RESUME, place, float(first), times=(number, acknowledged), stream=sink)
    raise AssertionError(f"no such message: {message!r}")


def _control(kind: int, number: int, born: float, times: tuple[Time, Time] | None, stream: str, source: str) -> Message:
    if kind == _WATERMARK:
        time, bound = times or (0, 0)
        return Watermark(time if number & _HAS_TIME else None, stream, source, bound if number & _HAS_BOUND else None)
    if kind == _PUNCTUATION:
        return Punctuation(number, born)
    if kind == _STEP_END:
        return StepEnd(number, born, None if times is None else float(times[0]))
    if kind == _BARRIER:
        return Barrier(number, stream)
    if kind == _RESTORE:
        return Restore(Barrier(number, stream))
    if kind == _END:
        return End(stream, source)
    if kind == _IDLE:
        return Idle(stream, source)
    if kind == _RESUME and times is not None:
        return Resume(stream, number, int(times[0]), int(times[1]), bool(born))
    raise StaleStreamError(f"a message of unknown kind {kind}")
