"""How the two ends of an edge begin, and what the consumer answers.

The producer opens two connections. The first brings answers: the producer says which edge it is and shows its token,
and gets READY with the number of a session, or an ERROR. The second brings frames, for the session that it names. On
the first the consumer then sends what its task has TAKEN, an ALIVE now and then, and DONE when it has received
everything.
"""

from __future__ import annotations

import json
import socket
import struct
from dataclasses import asdict, dataclass
from enum import IntEnum

from topology.edges.sockets import receive, receive_length, send
from topology.graph.errors import InputError

HELLO_BYTES = 16 * 1024
"""The longest greeting: nobody's word is believed, or kept, before its token has been seen."""

_ANSWER = struct.Struct("<BQ")


class Answer(IntEnum):
    """What the consumer says. Each comes with a number."""

    READY = 0  # the number of the session
    TAKEN = 1  # how many messages of this incarnation the consumer's task has taken
    ALIVE = 2  # the process is there
    DONE = 3  # everything has been received, up to the end
    ERROR = 4  # the bytes of the error that follows


@dataclass(frozen=True)
class Edge:
    """Names an edge.

    index:       the number of this edge among the consumer's inputs.
    incarnation: counts the lives of the producer; a newer one shuts out messages of an older one.
    capacity:    the bytes that the consumer may have before it has taken them; one message may exceed it.
    """

    component: str
    task: int
    index: int
    incarnation: int
    capacity: int


@dataclass(frozen=True)
class Hello:
    """The first message of a connection: the token, and either the edge, or the session that has been granted."""

    token: str
    edge: Edge | None
    session: int


def send_hello(to: socket.socket, token: str, edge: Edge | None = None, session: int = 0) -> None:
    """Greet the consumer's process."""
    content = {"token": str(token), "edge": None if edge is None else asdict(edge), "session": session}
    send(to, [json.dumps(content).encode()])


def receive_hello(source: socket.socket) -> Hello:
    """Receive the greeting of a producer; raises `InputError` if it is none."""
    length = receive_length(source)
    if length > HELLO_BYTES:
        raise InputError("a connection between tasks must begin with a greeting")
    content = bytearray(length)
    receive(source, memoryview(content))
    try:
        found = json.loads(content)
        edge = None if found["edge"] is None else Edge(**found["edge"])
        hello = Hello(found["token"], edge, found["session"])
        numbers = () if edge is None else (edge.task, edge.index, edge.incarnation, edge.capacity)
        if isinstance(hello.token, str) and all(type(number) is int for number in (hello.session, *numbers)):
            return hello
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise InputError("a connection between tasks must begin with a greeting")


def send_answer(to: socket.socket, answer: Answer, number: int = 0, content: bytes = b"") -> None:
    """Send one answer."""
    to.sendall(_ANSWER.pack(answer, number) + content)


def receive_answer(source: socket.socket) -> tuple[Answer, int, bytes]:
    """Receive one answer: its kind, its number, and the text of an error."""
    packed = bytearray(_ANSWER.size)
    receive(source, memoryview(packed))
    kind, number = _ANSWER.unpack(packed)
    answer = Answer(kind)
    if answer is not Answer.ERROR:
        return answer, number, b""
    if number > HELLO_BYTES:
        raise ConnectionError("the error is too long")
    content = bytearray(number)
    receive(source, memoryview(content))
    return answer, 0, bytes(content)
