"""Frames: what an encoder packs, a decoder unpacks, with columns where kernels want them."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topology import Barrier, Batch, End, Idle, Punctuation, StaleStreamError, StepEnd, Watermark
from topology.edges.wire import FrameDecoder, FrameEncoder, Part
from topology.graph.messages import Message

LEFT = pa.record_batch({"id": pa.array([1, 2, None]), "name": ["a", "ü", None]})
RIGHT = pa.record_batch({"key": [0.5, float("nan")], "kind": pa.array(["x", "y"]).dictionary_encode()})
NESTED = pa.record_batch({"list": pa.array([[1, 2], None, []]), "pair": pa.array([{"a": 1, "b": "x"}, None, {"a": 2}])})

MESSAGES: list[Message] = [
    Watermark(None, "left", "s1"),
    Punctuation(3, 1.25),
    StepEnd(4, 1.25, 1e9),
    StepEnd(5, clock=0.0),
    StepEnd(6),
    Batch("left", LEFT, 7, "s1", (1, 9), 2.5),
    Watermark(5, "left", "s1"),
    Watermark(None, "left", "s1", 0),
    Watermark(5, "left", "s1", 7),
    Watermark(-5.5, "", ""),
    Idle("left", "s1"),
    Idle("default", ""),
    Batch("right", RIGHT, 0, "", (0.5, 2.5), labels=(1, -(2**63))),
    Batch("left", LEFT.slice(1, 1), 2**62, "", (-(2**63), 2**63 - 1)),
    Batch("left", LEFT.slice(0, 0)),
    Batch("right", NESTED, 1),
    Batch("right", RIGHT.slice(1), 2),
    Barrier(12),
    End("left", "ein größerer Name \0 mit allem"),
    End(),
]


def as_received(parts: Sequence[Part]) -> pa.Buffer:
    """The frame in memory that Arrow allocated."""
    content = b"".join(bytes(part) for part in parts)
    received = pa.allocate_buffer(len(content))
    memoryview(received).cast("B")[:] = content
    return received


def size(parts: Sequence[Part]) -> int:
    return sum(map(len, parts))


def assert_same(arrived: list[Message], sent: list[Message]) -> None:
    assert [type(message) for message in arrived] == [type(message) for message in sent]
    for expected, received in zip(sent, arrived, strict=True):
        if isinstance(expected, Batch) and isinstance(received, Batch):
            received.rows.validate(full=True)
            assert received.rows.schema.equals(expected.rows.schema, check_metadata=True)
            assert str(received.rows.to_pylist()) == str(expected.rows.to_pylist())  # NaN is not equal to itself
            assert (received.stream, received.first, received.source) == (
                expected.stream, expected.first, expected.source,
            )  # fmt: skip
            assert (received.times, received.born, received.labels) == (
                expected.times, expected.born, expected.labels,
            )  # fmt: skip
        else:
            assert received == expected


def test_every_kind_of_message_arrives_as_it_was_sent() -> None:
    frame = FrameEncoder().encode(MESSAGES)
    first, messages, answer_wanted = FrameDecoder().decode(as_received(frame))
    assert (first, answer_wanted) == (0, False)
    assert_same(messages, MESSAGES)


def test_frames_number_their_messages_and_send_a_schema_once() -> None:
    encoder, decoder = FrameEncoder(), FrameDecoder()
    step: list[Message] = [Batch("left", LEFT), Batch("right", NESTED), Punctuation(1)]
    frames = [encoder.encode(step) for _ in range(3)]
    assert [decoder.decode(as_received(frame))[0] for frame in frames] == [0, 3, 6]
    assert size(frames[1]) == size(frames[2]) < size(frames[0])


def test_a_schema_that_changes_back_and_metadata_arrive() -> None:
    encoder, decoder = FrameEncoder(), FrameDecoder()
    described = LEFT.replace_schema_metadata({"unit": "m"})
    for rows in (LEFT, described, NESTED, LEFT, described, RIGHT, LEFT):
        sent: list[Message] = [Batch("left", rows)]
        assert_same(decoder.decode(as_received(encoder.encode(sent)))[1], sent)


batches = st.builds(
    lambda stream, values, first: Batch(stream, pa.record_batch({stream: pa.array(values, pa.int64())}), first),
    st.sampled_from(["a", "b", "c"]),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4),
    st.integers(0, 2**60),
)
controls = st.one_of(
    st.builds(Idle, st.text(), st.text()),
    st.builds(Watermark, st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)), st.text()),
    st.builds(Punctuation, st.integers(0, 2**62), st.floats(allow_nan=False)),
    st.builds(Barrier, st.integers(0, 2**62)),
    st.builds(End, st.text(), st.text()),
)


@settings(max_examples=100)
@given(frames=st.lists(st.lists(st.one_of(batches, controls), max_size=8), max_size=4))
def test_any_mixture_of_streams_and_controls_keeps_its_order(frames: list[list[Message]]) -> None:
    encoder, decoder = FrameEncoder(), FrameDecoder()
    for messages in frames:
        assert decoder.decode(as_received(encoder.encode(messages)))[1] == messages


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_columns_of_a_frame_lie_where_kernels_want_them(rows: int) -> None:
    batch = pa.record_batch({"c": [str(row) for row in range(rows)], "a": np.arange(rows), "b": np.arange(rows) / 3})
    coded = pa.record_batch({"d": pa.array(["x"] * rows).dictionary_encode(), "a": np.arange(rows)})
    sent: list[Message] = [Batch("x", coded), Batch("y", batch), Batch("x", coded), Batch("y", batch)]
    encoder, decoder = FrameEncoder(), FrameDecoder()
    for _ in range(2):
        for message in decoder.decode(as_received(encoder.encode(sent)))[1]:
            assert isinstance(message, Batch)
            assert message.rows.column("a").to_numpy().flags.aligned


def test_a_message_of_an_unknown_kind_is_refused() -> None:
    frame = bytearray(b"".join(bytes(part) for part in FrameEncoder().encode([Barrier(1)])))
    frame[20] = 99
    with pytest.raises(StaleStreamError, match="unknown kind 99"):
        FrameDecoder().decode(as_received([bytes(frame)]))


@pytest.mark.parametrize("wanted", [False, True])
def test_a_frame_can_ask_for_an_answer(wanted: bool) -> None:
    assert FrameDecoder().decode(as_received(FrameEncoder().encode([Barrier(1)], wanted)))[2] == wanted
