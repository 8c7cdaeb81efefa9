"""A stream identifier and its name in the topology stand for each other."""

from __future__ import annotations

import pickle

import pytest

from operators.engines.handshake_join.streams import FlowStream
from operators.engines.pan_join.streams import PanStream
from operators.engines.spo_join.streams import SPOStream
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import StreamId, StreamKind, stream_of
from operators.protocol.streams import COUNTS, LIMITS, MATCHES, PROBES, STEP, JoinStream, answer_streams, probes_of

KINDS = [*JoinStream, *PanStream, *SPOStream, *FlowStream]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("side", "dimension"), [(None, None), (LEFT, None), (RIGHT, 3)])
def test_a_name_gives_its_identifier_back(kind: StreamKind, side: int | None, dimension: int | None) -> None:
    stream = StreamId(kind, side, dimension)
    assert stream_of(stream.name) == stream
    assert pickle.loads(pickle.dumps(stream)) == stream


def test_names_are_those_of_the_topology() -> None:
    assert [stream.name for stream in STEP] == ["limits", "probes.left", "probes.right"]
    assert probes_of(RIGHT, 2).name == "probes.right.2"
    assert answer_streams(counts=False) == MATCHES
    assert answer_streams(counts=True) == (*MATCHES, *COUNTS)


def test_a_name_is_parsed_once() -> None:
    assert stream_of("probes.left") is stream_of("probes.left")


def test_no_two_kinds_share_a_name() -> None:
    with pytest.raises(AssertionError, match="two kinds of streams are called 'limits'"):

        class Another(StreamKind):
            LIMITS = "limits"


def test_a_stream_without_sides_has_none() -> None:
    assert PROBES[LEFT].side == LEFT
    with pytest.raises(AssertionError, match="limits belongs to no side"):
        _ = LIMITS.side
