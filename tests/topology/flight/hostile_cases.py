"""Hostile streams of rows by class, made from seeds: the corpus of the tests, and the mutations of the fuzz run.

A case is one call. `must_refuse` says that no row of it may be taken. Where a mutation can leave a batch that is valid
(a flipped bit in a value), a row may be taken, and only a crash or a filled memory is an error.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.topology.flight.hostile_calls import field, flight_data, ipc_messages, rows_of, varint
from topology.checks.message_checks import _Table

STAGE = ("stage", "R", "hostile", "1")
"""Rows that are taken wait for a commit that never comes, so they change no result."""

EVIL = (-1, -(2**31), -(2**63), 2**20, 2**24, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1)
Message = tuple[bytes, bytes]


@dataclass(frozen=True)
class Case:
    """One hostile call: the FlightData that it sends, and the kinds of errors that it may get."""

    messages: tuple[bytes, ...]
    must_refuse: bool = True
    kinds: frozenset[str] = frozenset({"InputError", "QuotaError"})


def stream(messages: list[Message], path: tuple[str | bytes, ...] = STAGE, **settings: Any) -> Case:
    """The call that sends these IPC messages."""
    return Case(
        tuple(flight_data(header, body, () if at else path) for at, (header, body) in enumerate(messages)), **settings
    )


def batches() -> list[pa.RecordBatch]:
    """Small batches of every layout that Arrow has; the first is of the schema that the join takes."""
    numbers = pa.array(range(20))
    words = pa.array([f"a word of some length {number}" for number in range(20)])
    codes, offsets = pa.array([0, 1] * 10, pa.int8()), pa.array([at // 2 for at in range(20)], pa.int32())
    columns: dict[str, pa.Array] = {
        "dictionary": words.dictionary_encode(),
        "runs": pc.run_end_encode(words),
        "text views": words.cast(pa.string_view()),
        "lists": pa.array([[number, 1] for number in range(20)]),
        "list views": pa.array([[number, 1] for number in range(20)], pa.list_view(pa.int64())),
        "fixed lists": pa.array([[number, 1] for number in range(20)], pa.list_(pa.int64(), 2)),
        "struct": pa.array([{"a": number, "b": str(number)} for number in range(20)]),
        "map": pa.array([[("a", number)] for number in range(20)], pa.map_(pa.string(), pa.int64())),
        "sparse": pa.UnionArray.from_sparse(codes, [numbers, words]),
        "dense": pa.UnionArray.from_dense(codes, offsets, [numbers[:10], words[:10]]),
        "nulls": pa.nulls(20),
        "flags": pa.array([True, None] * 10),
        "decimal": pa.array(range(20)).cast(pa.decimal128(38, 2)),
        "nested": pa.array([[{"a": [str(number)]}] for number in range(20)]),
    }
    plain = rows_of(list(range(20)), list(range(20)))
    return [plain, *(pa.record_batch({name: column, "n": numbers}) for name, column in columns.items())]


def truncations(seed: random.Random) -> Iterator[Case]:
    """A message ends too early: its header, its body, or the call's own framing."""
    messages = ipc_messages(seed.choice(batches()))
    at = seed.randrange(1, len(messages))
    header, body = messages[at]
    if seed.random() < 0.5 and body:
        messages[at] = header, body[: seed.randrange(len(body))]
    else:
        messages[at] = header[: seed.randrange(1, len(header))], body
    yield stream(messages)
    whole = stream(ipc_messages(seed.choice(batches()))).messages
    yield Case((*whole[:-1], whole[-1][: seed.randrange(1, len(whole[-1]))]))


def bit_flips_in_headers(seed: random.Random) -> Iterator[Case]:
    """Some bits of a header are wrong."""
    messages = ipc_messages(seed.choice(batches()))
    at = seed.randrange(len(messages))
    messages[at] = _flipped(seed, messages[at][0]), messages[at][1]
    yield stream(messages, must_refuse=False)


def bit_flips_in_bodies(seed: random.Random) -> Iterator[Case]:
    """Some bits of the columns are wrong."""
    messages = ipc_messages(seed.choice(batches()), seed.choice([None, "zstd", "lz4"]))
    at = seed.randrange(1, len(messages))
    messages[at] = messages[at][0], _flipped(seed, messages[at][1])
    yield stream(messages, must_refuse=False)


def forged_fields(seed: random.Random) -> Iterator[Case]:
    """A header lies about lengths, counts, positions, versions."""
    messages = ipc_messages(seed.choice(batches()))
    header, body = messages[-1]
    places = header_places(header)
    name = seed.choice(list(places))
    at, layout = seed.choice(places[name])
    forged = bytearray(header)
    if layout == "<q":
        struct.pack_into(layout, forged, at, seed.choice(EVIL))
    else:
        wrong = [number for number in range(16) if number != struct.unpack_from(layout, header, at)[0]]
        struct.pack_into(layout, forged, at, seed.choice(wrong))
    messages[-1] = bytes(forged), body
    yield stream(messages)


def forged_values(seed: random.Random) -> Iterator[Case]:
    """Offsets, indices, views, runs and type codes point outside, and texts are not UTF-8."""
    evil = seed.choice([-1, -(2**31), 21, 1000, 2**31 - 1])
    small = seed.choice([-1, -128, 21, 100, 127])
    text = b"0123456789" * 4
    offsets = np.sort(np.random.default_rng(seed.randrange(2**32)).integers(0, 40, 21)).astype(np.int32)
    position = seed.randrange(1, 20)
    bad_offsets = offsets.copy()
    bad_offsets[position] = evil if not 0 <= evil <= 40 else 2**30
    views = np.zeros((20, 4), np.int32)
    views[:, 0] = 13
    views[position] = seed.choice(
        [(13, 0, 7, 0), (13, 0, -1, 0), (13, 0, 0, 1000), (-5, 0, 0, 0), (2**31 - 1, 0, 0, 0)]
    )
    ends = np.arange(1, 21, dtype=np.int32)
    ends[min(position, 18)] = seed.choice([0, -1, 1, 2**31 - 1])
    numbers, buffer = pa.array(range(20)), pa.py_buffer
    good = pa.array([0, 1] * 10, pa.int8())
    codes = good.to_numpy().copy()
    codes[position] = small if small not in (0, 1) else 9
    dictionary = np.zeros(20, np.int8)
    dictionary[position] = small
    many: list[Callable[[], pa.Array]] = [
        lambda: pa.Array.from_buffers(pa.string(), 20, [None, buffer(bad_offsets), buffer(text)]),
        lambda: pa.Array.from_buffers(pa.binary(), 20, [None, buffer(bad_offsets), buffer(text)]),
        lambda: pa.Array.from_buffers(pa.string(), 20, [None, buffer(offsets), buffer(b"\xff" * 40)]),
        lambda: pa.Array.from_buffers(
            pa.large_string(), 20, [None, buffer(bad_offsets.astype(np.int64)), buffer(text)]
        ),
        lambda: pa.Array.from_buffers(
            pa.list_(pa.int64()), 20, [None, buffer(bad_offsets)], children=[pa.array(range(40))]
        ),
        lambda: pa.Array.from_buffers(pa.binary_view(), 20, [None, buffer(views), buffer(text)]),
        lambda: pa.Array.from_buffers(pa.string_view(), 20, [None, buffer(views), buffer(text)]),
        lambda: pa.Array.from_buffers(
            pa.run_end_encoded(pa.int32(), pa.int64()), 20, [None],
            children=[pa.Array.from_buffers(pa.int32(), 20, [None, buffer(ends)]), numbers],
        ),
        lambda: pa.Array.from_buffers(
            pa.dense_union([pa.field("a", pa.int64()), pa.field("b", pa.int64())]), 20,
            [None, buffer(codes), buffer(np.zeros(20, np.int32))], children=[numbers, numbers],
        ),
        lambda: pa.Array.from_buffers(
            pa.dense_union([pa.field("a", pa.int64()), pa.field("b", pa.int64())]), 20,
            [None, buffer(good.to_numpy()), buffer(np.full(20, evil if evil != 0 else -1, np.int32))],
            children=[numbers, numbers],
        ),
        lambda: pa.Array.from_buffers(
            pa.list_view(pa.int64()), 20,
            [None, buffer(np.zeros(20, np.int32)), buffer(np.full(20, evil, np.int32))], children=[numbers],
        ),
        lambda: pa.DictionaryArray.from_arrays(
            pa.Array.from_buffers(pa.int8(), 20, [None, buffer(dictionary)]), pa.array(["a", "b"]), safe=False
        ),
    ]  # fmt: skip
    yield stream(ipc_messages(pa.RecordBatch.from_arrays([seed.choice(many)(), numbers], ["c", "n"])))


def bombs(seed: random.Random) -> Iterator[Case]:
    """A small message that would unpack to much, or says so."""
    compression = seed.choice(["zstd", "lz4"])
    if seed.random() < 0.05:
        zeros = pa.record_batch({"z": pa.array(np.zeros(seed.choice([5, 8, 30]) * 1_000_000))})
        yield stream(ipc_messages(zeros, compression))
        return
    messages = ipc_messages(pa.record_batch({"z": pa.array(np.zeros(5000))}), compression)
    header, body = messages[-1]
    declared = seed.choice([2**25 + 1, 2**31, 2**40, 2**62, 2**63 - 1, -2, -(2**63), 39_999, 40_001, 8, 0])
    forged = bytearray(body)
    struct.pack_into("<q", forged, 0, declared)
    messages[-1] = header, bytes(forged)
    yield stream(messages)


def repeated_values(seed: random.Random) -> Iterator[Case]:
    """A valid batch whose values, written out, would fill the memory."""
    long = pa.array(["x" * 1_000_000], pa.string())
    many = 2000 + seed.randrange(1000)
    zeros = pa.array(np.zeros(many, np.int32))
    views = np.tile(np.array([1_000_000, 0, 0, 0], np.int32), many)
    columns = [
        lambda: pa.DictionaryArray.from_arrays(zeros, long),
        lambda: pa.RunEndEncodedArray.from_arrays(pa.array([many], pa.int32()), long),
        lambda: pa.RunEndEncodedArray.from_arrays(pa.array([2**31 - 1], pa.int32()), pa.array([1])),
        lambda: pa.Array.from_buffers(
            pa.binary_view(), many, [None, pa.py_buffer(views), pa.py_buffer(b"\0" * 1_000_000)]
        ),
        lambda: pa.ListViewArray.from_arrays(
            zeros, pa.array(np.full(many, 100_000, np.int32)), pa.array(np.zeros(100_000))
        ),
        lambda: pa.UnionArray.from_dense(pa.array(np.zeros(many, np.int8)), zeros, [long]),
    ]
    column = seed.choice(columns)()
    yield stream(ipc_messages(pa.RecordBatch.from_arrays([column], ["c"])), kinds=frozenset({"QuotaError"}))


def wild_schemas(seed: random.Random) -> Iterator[Case]:
    """Too many columns, types nested too deeply, too much metadata, names twice, types that unpickle."""
    deep: pa.DataType = pa.int64()
    for _ in range(33 + seed.randrange(60)):
        deep = pa.list_(deep) if seed.random() < 0.5 else pa.struct([("a", deep)])
    extension = {b"ARROW:extension:name": b"arrow.opaque", b"ARROW:extension:metadata": b"[" * 5000}
    schemas = [
        lambda: pa.schema([("a", deep)]),
        lambda: pa.schema([(f"c{number}", pa.int8()) for number in range(4097 + seed.randrange(100))]),
        lambda: pa.schema([("a", pa.int64())], metadata={"x": "y" * (300_000 + seed.randrange(1000))}),
        lambda: pa.schema([pa.field("a", pa.int64(), metadata={str(n): "x" for n in range(65 + seed.randrange(99))})]),
        lambda: pa.schema([pa.field("a", pa.binary(), metadata=extension)]),
        lambda: pa.schema([pa.field("a", pa.binary(), metadata={b"ARROW:extension:name": b"ray.data.arrow_tensor"})]),
    ]
    header = bytes(seed.choice(schemas)().serialize())[8:]
    yield stream([(header, b"")])


def other_schemas(seed: random.Random) -> Iterator[Case]:
    """Sound rows that the stream does not take."""
    batch = seed.choice(batches()[1:])
    yield stream(ipc_messages(batch, seed.choice([None, "zstd"])), kinds=frozenset({"SchemaError"}))


def wrong_order(seed: random.Random) -> Iterator[Case]:
    """Rows before their schema, two schemas, dictionaries without end or without rows."""
    (schema, *rest), other = ipc_messages(seed.choice(batches())), ipc_messages(batches()[1])
    orders = [
        lambda: rest,
        lambda: [schema, schema, *rest],
        lambda: [schema, other[0], *rest],
        lambda: [*rest, schema],
        lambda: [other[0], other[2]],
        lambda: [other[1], other[0], other[2]],
        lambda: [schema, (seed.randbytes(64), b"")],
        lambda: [(b"", seed.randbytes(64)), *rest],
    ]
    yield stream(seed.choice(orders)())


def garbage(seed: random.Random) -> Iterator[Case]:
    """Bytes that are no message of Flight."""
    length = seed.randrange(1, 200)
    yield Case((seed.randbytes(length),), must_refuse=False)
    yield Case((bytes(7_000_000 if seed.random() < 0.05 else seed.randrange(1, 5000)),))
    good = stream(ipc_messages(batches()[0])).messages
    tail = seed.choice(
        [
            b"\x0b" + seed.randbytes(8),  # a group
            varint(2 << 3 | 2) + varint(2**40) + b"x",
            varint(1000 << 3 | 2) + b"\xff" * 11,
            b"\xff" * 20,
            field(2, seed.randbytes(40)),
        ]
    )
    yield Case((good[0], good[1] + tail))


CLASSES: dict[str, tuple[Callable[[random.Random], Iterator[Case]], int]] = {
    "truncations": (truncations, 240),
    "bit flips in headers": (bit_flips_in_headers, 300),
    "bit flips in bodies": (bit_flips_in_bodies, 240),
    "forged fields": (forged_fields, 300),
    "forged values": (forged_values, 240),
    "bombs": (bombs, 160),
    "repeated values": (repeated_values, 60),
    "wild schemas": (wild_schemas, 80),
    "other schemas": (other_schemas, 80),
    "wrong order": (wrong_order, 80),
    "garbage": (garbage, 210),
}
"""Each class of streams with the number of its cases in the corpus."""


def cases(name: str) -> list[Case]:
    """The cases of one class in the corpus, always the same."""
    make, count = CLASSES[name]
    found: list[Case] = []
    while len(found) < count:
        found += make(random.Random(f"{name} {len(found)}"))
    return found[:count]


def mutated(number: int) -> Case:
    """A mutated stream of the fuzz run: a case of some class, in half of them with bits flipped once more."""
    seed = random.Random(number)
    quick = [make for name, (make, _) in CLASSES.items() if name not in ("repeated values", "wild schemas")]
    case = next(iter(seed.choice(quick)(seed)))
    if seed.random() < 0.5:
        return case
    at = seed.randrange(len(case.messages))
    flipped = _flipped(seed, case.messages[at])
    messages = (*case.messages[:at], flipped, *case.messages[at + 1 :])
    return replace(case, messages=messages, must_refuse=False)


def header_places(header: bytes) -> dict[str, list[tuple[int, str]]]:
    """Where a header of rows has its numbers, and how they are written."""
    message = _Table.root(memoryview(header))
    batch = message.table(2)
    places = {
        "version": [(message._find(0), "<h")],
        "kind": [(message._find(1), "<B")],
        "body length": [(message._find(3), "<q")],
        "rows": [(batch._find(0), "<q")],
    }
    for name, slot in (("nodes", 1), ("buffers", 2)):
        start, count = batch._vector(slot, 16)
        if count:
            places[name] = [(start + 8 * at, "<q") for at in range(2 * count)]
    return {name: [(at, layout) for at, layout in found if at is not None] for name, found in places.items()}


def _flipped(seed: random.Random, content: bytes) -> bytes:
    flipped = bytearray(content)
    for _ in range(seed.choice([1, 1, 1, 2, 8])):
        if flipped:
            flipped[seed.randrange(len(flipped))] ^= 1 << seed.randrange(8)
    return bytes(flipped)
