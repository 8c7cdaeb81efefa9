"""The end of a program whose threads wait for a topology that has fallen silent, or that is only slow."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.docs.code_blocks import ROOT
from tests.topology.flight.relay import Relay, relayed
from tests.topology.waiting import LONG, SHORT
from topology import Authority, Endpoint, Grant, Right, StoppedError
from topology.flight.calls_under_way import CallsUnderWay
from topology.flight.client_port import ClientPort
from topology.security.certificates import Credentials

PROGRAM = """
import sys, threading
import pyarrow as pa
from topology import FlightClient, Endpoint
from topology.flight import connection

connection.KEEPALIVE_SECONDS = connection.PING_SECONDS = 0.5
connection.CONNECT_SECONDS = 1
client = FlightClient(Endpoint.from_uri(sys.argv[1], sys.argv[2]))
if sys.argv[3] != "connecting":
    client.schema("in")
calls = {
    "connecting": lambda: client.schema("in"),
    "reading": lambda: list(client.results("out")),
    "finishing": lambda: client.finish("in"),
    "sending": lambda: (client.send("in", "a", pa.record_batch({"x": [1]})), client.flush()),
}


def call():
    try:
        calls[sys.argv[3]]()
    except Exception as error:
        ended.append(error)


ended = []
waiting = threading.Thread(target=call, daemon=True)
waiting.start()
print("called", flush=True)
sys.stdin.readline()
assert waiting.is_alive(), ended
"""


class Slow:
    """A port that takes all calls, answers questions about schemas at once, and everything else never."""

    def __init__(self) -> None:
        authority = Authority()
        token = authority.issue(*(Grant(right, name) for right in Right for name in ("in", "out")))
        self.port = ClientPort(authority, certificate=Credentials().issue("127.0.0.1"))
        self.endpoint = self.port.endpoint(token)
        self.called = threading.Semaphore(0)
        self._released = threading.Event()
        self.port.puts["send"] = self.port.gets["results"] = self._wait
        self.port.actions.update(schema=lambda *call: b"", finish=lambda *call: b"".join(self._wait(*call)))

    def close(self) -> None:
        self._released.set()
        self.port.close()

    def _wait(self, *call: Any) -> Iterator[bytes]:
        self.called.release()
        self._released.wait(LONG)
        yield from ()


@pytest.fixture
def slow() -> Iterator[Slow]:
    made = Slow()
    yield made
    made.close()


@pytest.fixture
def relay(slow: Slow) -> Iterator[Relay]:
    with relayed(slow.port.port) as made:
        yield made


class Program:
    """A program whose thread is inside a call."""

    def __init__(self, endpoint: Endpoint, call: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, endpoint.uri, str(endpoint.token), call],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def end(self) -> tuple[int, str]:
        """Let it end; its exit status, and what it printed."""
        printed, _ = self._process.communicate("\n", timeout=LONG)
        return self._process.returncode, printed


@pytest.mark.parametrize("call", ["reading", "finishing", "sending"])
@pytest.mark.parametrize("silent", [True, False], ids=["silent", "slow"])
def test_a_program_ends_in_the_midst_of_a_call(slow: Slow, relay: Relay, call: str, silent: bool) -> None:
    program = Program(relay.before(slow.endpoint), call)
    assert slow.called.acquire(timeout=LONG)
    if silent:
        relay.cut()  # the calls fail in a second, which is before gRPC lets the process go
    assert program.end() == (0, "called\n")


def test_a_program_ends_in_the_midst_of_an_attempt_to_connect(slow: Slow, relay: Relay) -> None:
    relay.cut()
    program = Program(relay.before(slow.endpoint), "connecting")
    assert program.end() == (0, "called\n")


class Client:
    """A client that notes why it was abandoned."""

    def __init__(self) -> None:
        self.errors: list[Exception] = []

    def abandon(self, error: Exception) -> None:
        self.errors.append(error)


def test_the_end_abandons_clients_allows_no_more_and_says_whether_a_thread_is_still_inside() -> None:
    calls, client, inside, leave = CallsUnderWay(), Client(), threading.Event(), threading.Event()
    calls.add(client)

    def call() -> None:
        with calls.one():
            inside.set()
            leave.wait(LONG)

    thread = threading.Thread(target=call)
    thread.start()
    assert inside.wait(LONG)
    assert not calls.end(SHORT)
    assert [type(error) for error in client.errors] == [StoppedError]
    with pytest.raises(StoppedError, match="the program is ending"):
        calls.add(Client())
    leave.set()
    assert calls.end(LONG)
    thread.join()


def test_a_forked_child_does_not_wait_for_threads_that_it_does_not_have() -> None:
    calls = CallsUnderWay()
    with calls.one():
        calls.reset()  # as after a fork
        assert calls.end(SHORT)
