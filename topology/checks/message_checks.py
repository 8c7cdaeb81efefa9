"""Checks the header of an Arrow IPC message against its body, before Arrow reads either.

A header is a flatbuffer that says where in the body each buffer lies and how long each column is. Arrow believes some
of it: it unpacks a compressed buffer to the size that the buffer declares (67 KB became 2 GB), and reads memory that is
not there when a forged batch is asked for its size. So sizes and positions are compared here with what has arrived:

- no header is larger than the quota, and no schema has too many fields or is nested too deeply;
- every buffer lies inside the body, and all of them together, packed and unpacked, are within the quota;
- no column claims more rows than the quota has bytes.

What the values mean (offsets, indices, UTF-8) is checked after decoding, by Arrow's own full validation: see `rows_in`.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator
from itertools import islice

from topology.checks.quotas import Quotas
from topology.graph.errors import InputError, QuotaError

MAX_FIELDS = 4096
"""The largest number of columns of a schema, those inside nested types included."""

MAX_DEPTH = 32
"""How deeply types may be nested."""

MAX_PAIRS = 64
"""The largest number of entries in a column's own metadata."""

MAX_EXTENSION_BYTES = 4096
"""The largest description of an extension type: code of that type reads it."""

_EXTENSION_NAME, _EXTENSION_METADATA = b"ARROW:extension:name", b"ARROW:extension:metadata"
_UNPICKLING = b"ray."
"""Ray's extension types have unpickled their description: code of the sender's choice."""

_VERSION = 4
"""V5 of the format. In older ones compression is declared elsewhere, so its sizes would not be seen here."""

_UNCOMPRESSED = -1
_PREFIX = 8
"""A compressed buffer begins with its unpacked size."""

# The slots of the fields in Message.fbs and Schema.fbs.
_MESSAGE_VERSION, _MESSAGE_KIND, _MESSAGE_HEADER, _MESSAGE_BODY_LENGTH = 0, 1, 2, 3
_BATCH_LENGTH, _BATCH_NODES, _BATCH_BUFFERS, _BATCH_COMPRESSION = 0, 1, 2, 3
_DICTIONARY_DATA = 1
_SCHEMA_FIELDS = 1
_FIELD_CHILDREN, _FIELD_METADATA = 5, 6
_PAIR = struct.Struct("<qq")


class Kind(enum.Enum):
    """The kinds of IPC messages in a stream of rows, with their numbers in Message.fbs."""

    SCHEMA = 1
    DICTIONARY = 2
    ROWS = 3


def check_message(header: memoryview, body: memoryview, quotas: Quotas) -> Kind:
    """Return the kind of an IPC message; raise an `InputError` unless its header fits its body and the quotas."""
    if len(header) > quotas.header_bytes:
        raise QuotaError(
            f"the header of a message has {len(header):,} bytes; at most {quotas.header_bytes:,} are taken: send fewer "
            f"columns or less metadata, or raise Quotas(header_bytes=...)"
        )
    try:
        message = _Table.root(header)
        if message.number("<h", _MESSAGE_VERSION) != _VERSION:
            raise InputError("the batch is in an old format of Arrow: use Arrow 1.0 or later")
        kind = Kind(message.number("<B", _MESSAGE_KIND))
        if message.number("<q", _MESSAGE_BODY_LENGTH) != len(body):
            raise InputError("the batch is damaged: its body does not have the length that its header says")
        content = message.table(_MESSAGE_HEADER)
        if kind is Kind.SCHEMA:
            _check_schema(content)
        else:
            _check_batch(content.table(_DICTIONARY_DATA) if kind is Kind.DICTIONARY else content, body, quotas)
    except (struct.error, IndexError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("the batch is damaged: its header cannot be read") from None
    return kind


def too_large(what: str, size: int, quotas: Quotas) -> QuotaError:
    """Return the error for a message that is too large."""
    return QuotaError(
        f"{what} of {size:,} bytes is too large: send at most {quotas.message_bytes:,} bytes at once, or raise "
        f"Quotas(message_bytes=...)"
    )


def _check_batch(batch: _Table, body: memoryview, quotas: Quotas) -> None:
    rows = batch.number("<q", _BATCH_LENGTH)
    nodes = list(batch.pairs(_BATCH_NODES))
    for length, nulls in [(rows, 0), *nodes]:
        if not 0 <= nulls <= length:
            raise InputError("the batch is damaged: a column has a negative length")
        if length > quotas.message_bytes:
            raise QuotaError(
                f"a column of {length:,} values is too long: send at most {quotas.message_bytes:,} at once, or "
                f"raise Quotas(message_bytes=...)"
            )
    compressed = batch.has(_BATCH_COMPRESSION)
    packed = unpacked = 0
    for offset, length in batch.pairs(_BATCH_BUFFERS):
        if offset < 0 or length < 0 or offset + length > len(body):
            raise InputError("the batch is damaged: a column lies outside its body")
        packed += length
        unpacked += _unpacked(body, offset, length) if compressed and length else length
    if max(packed, unpacked) > quotas.message_bytes:
        raise too_large("a batch", max(packed, unpacked), quotas)


def _unpacked(body: memoryview, offset: int, length: int) -> int:
    if length < _PREFIX:
        raise InputError("the batch is damaged: a compressed column has no size")
    declared = int.from_bytes(body[offset : offset + _PREFIX], "little", signed=True)
    if declared == _UNCOMPRESSED:
        return length - _PREFIX
    if declared < 0:
        raise InputError("the batch is damaged: a compressed column has a negative size")
    return declared


def _check_schema(schema: _Table) -> None:
    room = MAX_FIELDS
    level, slot = [schema], _SCHEMA_FIELDS
    for _ in range(MAX_DEPTH + 1):
        fields: list[_Table] = []
        for parent in level:
            fields += islice(parent.tables(slot), room + 1 - len(fields))
        room -= len(fields)
        if room < 0:
            raise InputError(f"the schema has more than {MAX_FIELDS:,} columns: send fewer")
        if not fields:
            return
        for field in fields:
            _check_extension(field)
        level, slot = fields, _FIELD_CHILDREN
    raise InputError(f"the schema nests types more than {MAX_DEPTH} deep: flatten them")


def _check_extension(field: _Table) -> None:
    pairs = list(islice(field.tables(_FIELD_METADATA), MAX_PAIRS + 1))
    if len(pairs) > MAX_PAIRS:
        raise InputError(f"a column has more than {MAX_PAIRS} entries of metadata: send fewer")
    for pair in pairs:
        key = pair.text(0, len(_EXTENSION_METADATA) + 1)
        if key == _EXTENSION_METADATA and len(pair.text(1, MAX_EXTENSION_BYTES + 1)) > MAX_EXTENSION_BYTES:
            raise InputError(
                f"the description of an extension type has more than {MAX_EXTENSION_BYTES:,} bytes: "
                f"send its storage type"
            )
        if key == _EXTENSION_NAME and pair.text(1, len(_UNPICKLING)) == _UNPICKLING:
            raise InputError("extension types of Ray are not taken from clients: send their storage type")


class _Table:
    """A table of a flatbuffer. Every access is checked; what lies outside raises `struct.error` or `IndexError`."""

    def __init__(self, content: memoryview, at: int) -> None:
        self._content = content
        self._at = at
        self._slots = at - self._read("<i", at)
        self._slots_end = self._slots + self._read("<H", self._slots)

    @classmethod
    def root(cls, content: memoryview) -> _Table:
        return cls(content, int.from_bytes(content[:4], "little"))

    def has(self, slot: int) -> bool:
        return self._find(slot) is not None

    def number(self, layout: str, slot: int) -> int:
        at = self._find(slot)
        return 0 if at is None else self._read(layout, at)

    def table(self, slot: int) -> _Table:
        at = self._find(slot)
        if at is None:
            raise IndexError(slot)
        return _Table(self._content, at + self._read("<I", at))

    def tables(self, slot: int) -> Iterator[_Table]:
        start, count = self._vector(slot, 4)
        for at in range(start, start + 4 * count, 4):
            yield _Table(self._content, at + self._read("<I", at))

    def pairs(self, slot: int) -> Iterator[tuple[int, int]]:
        start, count = self._vector(slot, _PAIR.size)
        return _PAIR.iter_unpack(self._content[start : start + _PAIR.size * count])

    def text(self, slot: int, at_most: int) -> bytes:
        start, count = self._vector(slot, 1)
        return bytes(self._content[start : start + min(count, at_most)])

    def _vector(self, slot: int, size: int) -> tuple[int, int]:
        at = self._find(slot)
        if at is None:
            return 0, 0
        at += self._read("<I", at)
        count = self._read("<I", at)
        if at + 4 + size * count > len(self._content):
            raise IndexError(slot)
        return at + 4, count

    def _find(self, slot: int) -> int | None:
        at = self._slots + 4 + 2 * slot
        if at + 2 > self._slots_end:
            return None
        offset = self._read("<H", at)
        return self._at + offset if offset else None

    def _read(self, layout: str, at: int) -> int:
        if at < 0:
            raise IndexError(at)
        number: int = struct.unpack_from(layout, self._content, at)[0]
        return number
