"""The protobuf messages of the Flight protocol that a client port reads and writes.

They are few and flat, so they are read by hand: columns stay where gRPC has put them, and no length is believed before
it has been compared with the bytes that are there.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from topology.graph.errors import InputError

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}
_MAX_VARINT = 10

# The numbers of the fields in Flight.proto.
_DATA_DESCRIPTOR, _DATA_HEADER, _DATA_METADATA, _DATA_BODY = 1, 2, 3, 1000
_DESCRIPTOR_PATH = 3
_TICKET = 1
_ACTION_TYPE, _ACTION_BODY = 1, 2
_ANSWER = 1

MAX_FIELDS = 1000
"""The most fields of one message; Flight's have four, and a path has a field for each of its parts."""

_PREFIX = 8
"""The bytes before the header of an IPC message: a marker and the header's length."""


@dataclass(frozen=True, slots=True)
class FlightData:
    """One message of a stream of rows: an IPC message in two parts, the client's own metadata, or both."""

    descriptor: memoryview
    header: memoryview
    metadata: memoryview
    body: memoryview


def read_flight_data(content: bytes) -> FlightData:
    """Take a FlightData message apart, without copying."""
    found = dict(_fields(content))
    nothing = memoryview(b"")
    descriptor, header, metadata, body = (
        found.get(number, nothing) for number in (_DATA_DESCRIPTOR, _DATA_HEADER, _DATA_METADATA, _DATA_BODY)
    )
    return FlightData(descriptor, header, metadata, body)


def read_path(descriptor: memoryview) -> list[bytes]:
    """Return the path of a FlightDescriptor; empty if it is a command."""
    return [bytes(value) for number, value in _fields(descriptor) if number == _DESCRIPTOR_PATH]


def read_ticket(content: bytes) -> bytes:
    """Return the content of a Ticket."""
    return bytes(dict(_fields(content)).get(_TICKET, b""))


def read_action(content: bytes) -> tuple[bytes, bytes]:
    """Return the type and the body of an Action."""
    found = dict(_fields(content))
    return bytes(found.get(_ACTION_TYPE, b"")), bytes(found.get(_ACTION_BODY, b""))


def answer(content: bytes) -> bytes:
    """Return a Result of an action, or a PutResult: both have one field."""
    return _field(_ANSWER, len(content)) + content if content else b""


def metadata_data(metadata: bytes) -> bytes:
    """Return the FlightData that carries metadata alone."""
    return _field(_DATA_METADATA, len(metadata)) + metadata


def schema_data(schema: pa.Schema) -> bytes:
    """Return the FlightData that opens a stream of rows."""
    return _flight_data(memoryview(schema.serialize()), b"")


def rows_data(rows: pa.RecordBatch, has_dictionaries: bool, metadata: bytes | pa.Buffer = b"") -> list[bytes]:
    """Return the FlightData of a batch, behind those of its dictionaries."""
    if not has_dictionaries:
        return [_flight_data(memoryview(rows.serialize()), metadata)]
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as stream:
        stream.write_batch(rows)
    _, *messages = pa.ipc.MessageReader.open_stream(out.getvalue())
    *dictionaries, last = [memoryview(message.serialize()) for message in messages]
    return [*(_flight_data(message, b"") for message in dictionaries), _flight_data(last, metadata)]


def _flight_data(message: memoryview, metadata: bytes | pa.Buffer) -> bytes:
    length = int.from_bytes(message[4:_PREFIX], "little")
    header, body = message[_PREFIX : _PREFIX + length], message[_PREFIX + length :]
    parts: list[bytes | memoryview] = [_field(_DATA_HEADER, length), header]
    if len(metadata):
        parts += [_field(_DATA_METADATA, len(metadata)), memoryview(metadata)]
    return b"".join([*parts, _field(_DATA_BODY, len(body)), body])


def _fields(content: bytes | memoryview) -> list[tuple[int, memoryview]]:
    """Return the fields that have a length, in order; a reader takes the last of each number."""
    view = memoryview(content)
    found = []
    at = count = 0
    while at < len(view):
        count += 1
        if count > MAX_FIELDS:
            raise InputError("the call is damaged: it is not a message of Arrow Flight")
        key, at = _varint(view, at)
        kind = key & 7
        if kind == _LENGTH:
            length, at = _varint(view, at)
            if length > len(view) - at:
                raise InputError("the call is damaged: a field is longer than its message")
            found.append((key >> 3, view[at : at + length]))
            at += length
        elif kind == _VARINT:
            _, at = _varint(view, at)
        elif kind in _FIXED:
            at += _FIXED[kind]
        else:
            raise InputError("the call is damaged: it is not a message of Arrow Flight")
    return found


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    number = 0
    for position, byte in enumerate(view[at : at + _MAX_VARINT]):
        number |= (byte & 127) << (7 * position)
        if byte < 128:
            return number, at + position + 1
    raise InputError("the call is damaged: a number in it has no end")


def _field(number: int, length: int) -> bytes:
    return _as_varint(number << 3 | _LENGTH) + _as_varint(length)


def _as_varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
