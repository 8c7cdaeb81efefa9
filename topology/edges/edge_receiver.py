"""The consumers' ends of all edges into a process: puts messages into the inboxes of its tasks, and acknowledges them.

A producer whose consumer says nothing for `SILENCE_SECONDS` gives it up. So every edge hears that this process is
alive, more often than that.
"""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa

from topology.edges.edge_input import EdgeInput
from topology.edges.hello import Answer, Edge, Hello, receive_hello, send_answer
from topology.edges.sockets import SILENCE_SECONDS, Listener, receive, receive_length, shut
from topology.edges.wire import FrameDecoder
from topology.graph.components import Origin
from topology.graph.errors import InputError
from topology.graph.errors_as_text import error_to_text
from topology.graph.graph import TaskName
from topology.graph.messages import Message
from topology.handle.endpoint import LOOPBACK
from topology.security.tls import Certificate
from topology.security.tokens import Authority, Caller, Right
from topology.tasks.inbox import Inbox

ALIVE_SECONDS = SILENCE_SECONDS / 5
STRANGERS = 64
"""Connections at a time that have not shown a token yet."""

_ANSWER_SECONDS = 5.0
"""How long a producer may leave an answer unread in its full buffer."""

_CLOSE_SECONDS = 2.0


class EdgeReceiver:
    """Receives the edges into all tasks of a process on one port.

    With a certificate that identifies clients, only processes that show one of the same authority are heard.

    incarnation: of this process; edges of older ones are refused.
    """

    def __init__(
        self,
        authority: Authority,
        tasks: Mapping[TaskName, tuple[Sequence[Origin], Inbox]],
        host: str = LOOPBACK,
        certificate: Certificate | None = None,
        incarnation: int = 0,
    ) -> None:
        self._authority = authority
        self._inputs: dict[tuple[str, int, int], EdgeInput] = {}
        for (component, task), (origins, inbox) in tasks.items():
            inputs = [EdgeInput(origin, inbox, incarnation) for origin in origins]
            self._inputs |= {(component, task, index): each for index, each in enumerate(inputs)}
            inbox.on_taken = partial(_note_taken, inputs)
        self._listener = Listener(host, certificate)
        self._sessions: dict[int, _Session] = {}
        self._connections: set[socket.socket] = set()
        self._strangers = threading.BoundedSemaphore(STRANGERS)
        self._closed = threading.Event()
        self._lock = threading.Lock()
        for work, name in ((self._accept, "edges into this process"), (self._stay_alive, "signs of life to producers")):
            threading.Thread(target=work, name=name, daemon=True).start()

    @property
    def location(self) -> str:
        """Where producers connect to."""
        return self._listener.location

    def close(self) -> None:
        """Stop listening and end all edges."""
        self._closed.set()
        self._listener.close()
        with self._lock:
            connections = list(self._connections)
        for each in connections:
            shut(each)

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                accepted = self._listener.accept()
            except OSError:
                if self._closed.wait(0.1):  # else a connection that broke, or no descriptor is free
                    return
                continue
            self._strangers.acquire()
            threading.Thread(target=self._serve, args=(accepted,), name="an edge", daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        """Serve one connection; only that of frames has a thread for long."""
        kept = False
        connection = accepted
        with self._lock:
            self._connections.add(accepted)
        try:
            try:
                connection = self._listener.encrypted(accepted)
                hello = receive_hello(connection)
                Caller(self._authority.rights_of(hello.token)).require(Right.CHANNEL)
            finally:
                self._strangers.release()
            with self._lock:
                self._connections.add(connection)
            if self._closed.is_set():
                return
            if hello.edge is not None:
                self._open(hello.edge, connection)
                kept = True
            else:
                self._receive(hello, connection)
        except OSError:
            pass  # the producer has gone, or is none; it learns why, or its own controller does
        except Exception as error:
            _send_error(connection, error)
        finally:
            with self._lock:
                self._connections.discard(accepted)
                if not kept:
                    self._connections.discard(connection)
            if not kept:
                connection.close()

    def _open(self, edge: Edge, answers: socket.socket) -> None:
        """Grant a session for the frames of an edge."""
        found = self._inputs.get((edge.component, edge.task, edge.index))
        if found is None:
            raise InputError("there is no such edge in this process")
        answers.settimeout(_ANSWER_SECONDS)
        session = _Session(found, edge, answers)
        found.open(edge.incarnation, edge.capacity, session)
        number = secrets.randbits(63)
        with self._lock:
            self._sessions[number] = session
        session.send(Answer.READY, number)

    def _receive(self, hello: Hello, frames: socket.socket) -> None:
        """Deliver frames until the edge ends."""
        with self._lock:
            session = self._sessions.pop(hello.session, None)
        if session is None:
            raise InputError("there is no such session")
        frames.settimeout(None)
        decoder = FrameDecoder()
        try:
            while length := receive_length(frames):
                content = pa.allocate_buffer(length)
                receive(frames, memoryview(content).cast("B"))
                session.input.deliver(session.edge.incarnation, *decoder.decode(content))
            session.send(Answer.DONE)
        except OSError:
            raise
        except Exception as error:
            session.send_error(error)
        finally:
            session.input.leave(session)
            with self._lock:
                self._connections.discard(session.answers)
            session.close()

    def _stay_alive(self) -> None:
        while not self._closed.wait(ALIVE_SECONDS):
            for each in self._inputs.values():
                each.say_alive()


def _note_taken(inputs: Sequence[EdgeInput], index: int, message: Message) -> None:
    inputs[index].note_taken(message)


def _send_error(answers: socket.socket, error: Exception) -> None:
    content = error_to_text(error)
    try:
        send_answer(answers, Answer.ERROR, len(content), content)
    except OSError:
        pass  # the producer has gone


class _Session:
    """One life of an edge, as long as its connections: sends answers, from any thread."""

    def __init__(self, to: EdgeInput, edge: Edge, answers: socket.socket) -> None:
        self.input = to
        self.edge = edge
        self.answers = answers
        self._lock = threading.Lock()

    def send(self, answer: Answer, number: int = 0) -> None:
        """Send an answer; raises OSError if the producer has gone."""
        with self._lock:
            send_answer(self.answers, answer, number)

    def send_error(self, error: Exception) -> None:
        """Tell the producer why its edge ends."""
        with self._lock:
            _send_error(self.answers, error)

    def close(self) -> None:
        """End the connection."""
        with self._lock:
            shut(self.answers)
            self.answers.close()
