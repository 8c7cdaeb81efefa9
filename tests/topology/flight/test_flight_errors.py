"""Errors keep their type and their words across Flight."""

import pyarrow.flight as flight
import pytest

from topology import (
    AuthenticationError,
    InputError,
    InterlaceError,
    OutOfOrderError,
    SchemaError,
    SourceEndedError,
    StoppedError,
    TaskError,
    UnknownInputError,
)
from topology.flight.errors import from_flight, raised_by, to_flight
from topology.graph.errors import ConnectionLostError
from topology.graph.errors_as_text import MOST_BYTES

KINDS = [
    AuthenticationError, InputError, OutOfOrderError, SchemaError, SourceEndedError, StoppedError, UnknownInputError
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_type_and_message_survive(kind: type[InterlaceError]) -> None:
    error = kind("stream 'größe': \"wrong\"\nsecond line")
    arrived = from_flight(to_flight(error), "the topology")
    assert type(arrived) is kind
    assert str(arrived) == str(error)


def test_a_task_error_keeps_its_task_and_both_ends_of_a_long_traceback() -> None:
    error = TaskError("split", 3, "Traceback\n" + "  frame é\n" * 10_000 + "ValueError: the reason")
    carried = to_flight(error)
    assert len(carried.extra_info) <= MOST_BYTES
    arrived = from_flight(carried, "the topology")
    assert isinstance(arrived, TaskError)
    assert (arrived.component, arrived.task) == ("split", 3)
    assert arrived.traceback_text.startswith("Traceback\n")
    assert arrived.traceback_text.endswith("ValueError: the reason")


def test_an_unexpected_error_is_reported_as_such() -> None:
    arrived = from_flight(to_flight(ZeroDivisionError("division by zero")), "the topology")
    assert type(arrived) is InterlaceError
    assert str(arrived) == "unexpected ZeroDivisionError: division by zero"


@pytest.mark.parametrize("trailer", [b"{}", b"\xff", b"[]", b'{"kind": "os.system", "arguments": ["ls"]}',
                                     b'{"kind": "TaskError", "arguments": []}'])  # fmt: skip
def test_a_peer_cannot_choose_what_is_raised(trailer: bytes) -> None:
    arrived = from_flight(flight.FlightServerError("x", trailer), "the topology")
    assert type(arrived) is InterlaceError
    assert "does not know" in str(arrived)


def test_transport_errors_become_ours_without_debugging_details() -> None:
    with pytest.raises(ConnectionLostError, match=r"^the topology cannot be reached"), raised_by("the topology"):
        raise flight.FlightUnavailableError("failed to connect")
    message = "boom. Detail: Failed. gRPC client debug context: UNKNOWN"
    with pytest.raises(InterlaceError, match=r"^the topology failed: boom$"), raised_by("the topology"):
        raise flight.FlightServerError(message)
