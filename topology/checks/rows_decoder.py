"""Makes rows of the messages that a client sends, and makes sure that they are sound before anything else sees them.

Three steps, each of which relies on the one before: the headers are checked against the bytes that have arrived
(`check_message`); Arrow decodes them; Arrow's full validation compares offsets, indices, views and texts with the
buffers. Until it has passed, nothing asks the batch for anything, not even its size: a forged one answers with memory
that is not there. Last, rows that are written once and used many times (dictionaries, runs, views) must have a bounded
size when written out: operators write them out.
"""

from __future__ import annotations

from collections import deque

import pyarrow as pa

from topology.checks.message_checks import Kind, check_message
from topology.checks.quotas import Quotas
from topology.checks.written_out import repeats_values, written_out_bytes
from topology.graph.errors import InputError, QuotaError

WRITTEN_OUT = 16
"""How many times the size of a message its rows may have when written out."""

REPEATED_ROWS = 4 * 1024 * 1024
"""The most rows of a batch whose types write values once and use them many times."""

_ALIGNMENT = 8
_MARKER = b"\xff\xff\xff\xff"
_PREFIX = 8
"""An IPC message begins with a marker and the length of its header."""


class RowsDecoder:
    """Decodes one stream of IPC messages; after an error it takes no more."""

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._source = _Messages()
        self._reader: pa.RecordBatchReader | None = None
        self._repeats = False

    def take(self, header: memoryview, body: memoryview) -> pa.RecordBatch | None:
        """Take the next message; return the rows if it completes a batch. A refusal is an `InputError`."""
        kind = check_message(header, body, self._quotas)
        if (kind is Kind.SCHEMA) != (self._reader is None):
            raise InputError("the stream is damaged: it must begin with its schema, and have one")
        self._source.add(header, body)
        if self._source.waiting_bytes > 2 * self._quotas.message_bytes:
            raise QuotaError(
                f"the dictionaries of a batch have more than {2 * self._quotas.message_bytes:,} bytes: send plain "
                f"columns, or raise Quotas(message_bytes=...)"
            )
        try:
            if kind is Kind.SCHEMA:
                self._reader = pa.ipc.open_stream(self._source)
                _check_names(self._reader.schema)
                self._repeats = any(repeats_values(column) for column in self._reader.schema.types)
            elif kind is Kind.ROWS:
                assert self._reader is not None
                return self._sound(self._reader.read_next_batch())
        except (pa.ArrowException, ValueError, OSError, StopIteration, NotImplementedError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"the batch is damaged ({_shortened(error)})") from None
        return None

    def _sound(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        rows.validate(full=True)
        if self._repeats:
            if rows.num_rows > REPEATED_ROWS:
                raise QuotaError(f"a batch of {rows.num_rows:,} rows is too long: send {REPEATED_ROWS:,} or fewer")
            limit = WRITTEN_OUT * self._quotas.message_bytes
            size = written_out_bytes(rows)
            if size > limit:
                raise QuotaError(
                    f"a batch of {size:,} bytes when its values are written out is too large; at most {limit:,} are "
                    f"taken: send fewer rows at once, or raise Quotas(message_bytes=...)"
                )
        return rows


def sound_schema(content: bytes, quotas: Quotas) -> pa.Schema:
    """Return the schema in an IPC message with its prefix; raise an `InputError` unless it is sound."""
    length = int.from_bytes(content[4:_PREFIX], "little")
    header = memoryview(content)[_PREFIX : _PREFIX + length]
    if content[:4] != _MARKER or len(header) != length:
        raise InputError("the schema cannot be read: it is not an Arrow IPC message")
    if check_message(header, memoryview(b""), quotas) is not Kind.SCHEMA:
        raise InputError("the schema cannot be read: it is another kind of message")
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(content))
        _check_names(schema)
        return schema
    except (pa.ArrowException, ValueError, OSError, NotImplementedError) as error:
        raise InputError(f"the schema cannot be read ({_shortened(error)})") from None


class _Messages:
    """The checked messages that Arrow has not read yet, as a file."""

    closed = False

    def __init__(self) -> None:
        self._pieces: deque[memoryview] = deque()
        self.waiting_bytes = 0

    def add(self, header: memoryview, body: memoryview) -> None:
        padding = bytes(-len(header) % _ALIGNMENT)
        prefix = _MARKER + (len(header) + len(padding)).to_bytes(4, "little")
        # Columns have to start at a multiple of 8: where gRPC has put the message somewhere else, they are copied.
        aligned = pa.py_buffer(body).address % _ALIGNMENT == 0 if len(body) else True
        self._pieces.append(memoryview(b"".join((prefix, header, padding))))
        if len(body):
            self._pieces.append(body if aligned else memoryview(bytes(body)))
        self.waiting_bytes += len(prefix) + len(header) + len(padding) + len(body)

    def read(self, size: int = -1) -> memoryview:
        """Return the next bytes; a single piece without copying it."""
        wanted = self.waiting_bytes if size < 0 else min(size, self.waiting_bytes)
        parts = []
        while wanted:
            piece = self._pieces.popleft()
            if len(piece) > wanted:
                self._pieces.appendleft(piece[wanted:])
                piece = piece[:wanted]
            parts.append(piece)
            wanted -= len(piece)
            self.waiting_bytes -= len(piece)
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._pieces.clear()
        self.waiting_bytes = 0


def _check_names(schema: pa.Schema) -> None:
    """Raise a `ValueError` unless all names, those inside types included, are UTF-8: Arrow decodes them when asked."""
    fields = list(schema)
    while fields:
        field = fields.pop()
        field.name.encode()
        kind = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
        fields += [kind.field(index) for index in range(kind.num_fields)]


def _shortened(error: Exception) -> str:
    return str(error).splitlines()[0][:200] if str(error) else "its end is missing"
