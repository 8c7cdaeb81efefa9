"""The port that clients of a topology call: Arrow Flight on a gRPC server whose every input is bounded.

Arrow's own Flight server reads messages of any size, and decodes their rows, before a line of Python runs; a call with
one message is read even before its token is checked (half a gigabyte without a token took 1.3 GB). It has no setting
for either, so we do not use it. This port speaks the same protocol, and
any Arrow client can call it, but

- a token is checked before anything of its call is read;
- a message larger than `Quotas.message_bytes` is refused by its length, before its content is read;
- rows are checked before Arrow decodes them, and in full before anything else sees them (`RowsDecoder`);
- calls, connections and headers are limited.

Its owner registers operations by name; `operations.py` says how a call names one.
"""

from __future__ import annotations

import atexit
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
import pyarrow as pa

from topology.checks.flight_data import answer, metadata_data, read_action, read_flight_data, read_path, read_ticket
from topology.checks.quotas import Meter, Quotas, Usage
from topology.checks.rows_decoder import RowsDecoder
from topology.flight.call_options import token_in
from topology.flight.errors import REFUSED
from topology.flight.operations import Path, find_operation, read_list, split_path
from topology.graph.errors import AuthenticationError, InputError, StoppedError, TopologyError
from topology.graph.errors_as_text import error_to_text
from topology.handle.endpoint import ENCRYPTED, LOOPBACK, PLAIN, Endpoint, location_of
from topology.security.listening import check_host
from topology.security.tls import Certificate
from topology.security.tokens import Authority, Caller

CLOSE_SECONDS = 2.0
REBIND_SECONDS, REBIND_PAUSE_SECONDS = 3.0, 0.05
"""How long to wait for a port that whoever had it before may still be closing, and how often to try."""

_SERVICE = "/arrow.flight.protocol.FlightService/"
_FRAME_BYTES = 64 * 1024
"""What a message has beside its header and its rows: names, the client's own metadata."""

_CALL_HEADER_BYTES = 16 * 1024
_CALLS = 4096
_CONNECTIONS = 4096
_HANDSHAKE_SECONDS, _IDLE_SECONDS = 20, 600
_SHORTEST_PING_SECONDS = 0.5
"""Clients may ping as often as this."""

PING_SECONDS = 20
"""After how long a silent client is pinged, and how long it has to answer; then its calls end."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One message of a client: sound rows, or none, and the client's own metadata."""

    rows: pa.RecordBatch | None
    metadata: bytes


@dataclass(frozen=True)
class Call:
    """One call of a client: what its token grants and uses."""

    caller: Caller
    usage: Usage


TakeRows = Callable[[Call, Path, Iterator[Chunk]], Iterator[bytes]]
"""Takes the chunks of a client; yields answers."""

GiveRows = Callable[[Call, Path, Callable[[], bool], Iterator[bytes] | None], Iterator[bytes]]
"""Yields the FlightData of rows. The third argument tells whether the client has gone; the fourth has the metadata of
what the client still sends, or is None if it cannot send any."""

Act = Callable[[Call, Path, bytes], bytes]


class ClientPort(grpc.GenericRpcHandler):
    """A Flight server for clients that are not trusted.

    port: where to listen, if that is free; 0: anywhere.
    """

    def __init__(
        self,
        authority: Authority,
        host: str = LOOPBACK,
        certificate: Certificate | None = None,
        quotas: Quotas | None = None,
        port: int = 0,
    ) -> None:
        check_host(host, certificate)
        self.quotas = quotas or Quotas()
        self.puts: dict[str, TakeRows] = {}
        self.gets: dict[str, GiveRows] = {}
        self.actions: dict[str, Act] = {}
        self.closed = False
        self._authority = authority
        self._meter = Meter(self.quotas)
        self._threads = _Threads()
        self._server = grpc.server(self._threads, [self], options=_options(self.quotas), maximum_concurrent_rpcs=_CALLS)
        scheme = PLAIN if certificate is None else ENCRYPTED
        self.port = self._listen(host, port, certificate)
        self.location = location_of(scheme, host, self.port)
        self._root = None if certificate is None else certificate.root
        self._server.start()
        atexit.register(self.close)

    def _listen(self, host: str, port: int, certificate: Certificate | None) -> int:
        """Listen on a port, if it becomes free soon, or else on any; return which."""
        scheme = PLAIN if certificate is None else ENCRYPTED
        limit = time.monotonic() + REBIND_SECONDS
        while True:
            address = location_of(scheme, host, port).removeprefix(f"{scheme}://")
            try:
                if certificate is None:
                    return int(self._server.add_insecure_port(address))
                pair = (str(certificate.key_pem).encode(), str(certificate.chain_pem).encode())
                return int(self._server.add_secure_port(address, grpc.ssl_server_credentials([pair])))
            except RuntimeError as error:
                if port and time.monotonic() > limit:
                    port = 0
                elif port:
                    time.sleep(REBIND_PAUSE_SECONDS)
                else:
                    cause = "" if certificate is None else "; is its key that of the certificate, and are both PEM?"
                    raise TopologyError(f"cannot listen on {host}: {error}{cause}") from None

    def endpoint(self, token: str) -> Endpoint:
        """Return where clients reach this port, with a token that the port knows."""
        return Endpoint(self.location, token, self._root)

    def close(self) -> None:
        """Stop listening. Running calls end at their next message, those of idle clients a moment later."""
        if self.closed:
            return
        self.closed = True
        atexit.unregister(self.close)
        self._server.stop(CLOSE_SECONDS).wait(2 * CLOSE_SECONDS)
        # A thread inside Arrow when the interpreter goes away would abort the process.
        self._threads.join(CLOSE_SECONDS)

    def require_open(self) -> None:
        """Raise `StoppedError` if the port is closed; handlers call it before each message."""
        if self.closed:
            raise StoppedError("the topology has been stopped")

    def service(self, handler_call_details: Any) -> grpc.RpcMethodHandler | None:
        """Choose what handles a call; gRPC has read its headers and nothing else."""
        token = token_in(handler_call_details.invocation_metadata)
        rights = self._authority.rights_of(token)
        if not rights:
            return grpc.stream_stream_rpc_method_handler(_refuse_stranger)
        usage = self._meter.of(hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest())
        call = Call(Caller(rights), usage)
        match handler_call_details.method.removeprefix(_SERVICE):
            case "DoPut":
                return grpc.stream_stream_rpc_method_handler(partial(self._put, call))
            case "DoExchange":
                return grpc.stream_stream_rpc_method_handler(partial(self._exchange, call))
            case "DoGet":
                return grpc.unary_stream_rpc_method_handler(partial(self._get, call))
            case "DoAction":
                return grpc.unary_stream_rpc_method_handler(partial(self._act, call))
        return None

    def _put(self, call: Call, messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        with _answering(context), call.usage.call(context.peer()):
            first = next(messages, b"")
            operation, path = split_path(read_path(read_flight_data(first).descriptor))
            yield from map(answer, self._taken(call, operation, path, first, messages))

    def _exchange(self, call: Call, messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        """Do any operation: a client can cancel an exchange while it waits, but neither a get nor an action."""
        with _answering(context), call.usage.call(context.peer()):
            first = next(messages, b"")
            data = read_flight_data(first)
            operation, path = split_path(read_path(data.descriptor))
            if operation in self.gets:
                said = (bytes(read_flight_data(message).metadata) for message in messages)
                yield from self.gets[operation](call, path, lambda: not context.is_active(), said)
            elif operation in self.actions:
                body = data.metadata or read_flight_data(next(messages, b"")).metadata  # Arrow's client sends it apart
                yield metadata_data(self.actions[operation](call, path, bytes(body)))
            else:
                yield from map(metadata_data, self._taken(call, operation, path, first, messages))

    def _taken(self, call: Call, operation: str, path: Path, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
        """Take rows; a put and an exchange differ only in how their answers are packed."""
        take = find_operation(self.puts, operation)
        return take(call, path, self._chunks(RowsDecoder(self.quotas), first, rest))

    def _chunks(self, decoder: RowsDecoder, first: bytes, rest: Iterator[bytes]) -> Iterator[Chunk]:
        message = first
        while message:
            data = read_flight_data(message)
            self.require_open()
            rows = decoder.take(data.header, data.body) if len(data.header) else None
            if rows is not None or not len(data.header):
                if len(data.metadata) > _FRAME_BYTES:
                    raise InputError(f"the metadata of a message has more than {_FRAME_BYTES:,} bytes")
                yield Chunk(rows, bytes(data.metadata))
            del data, rows
            message = next(rest, b"")

    def _get(self, call: Call, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        with _answering(context), call.usage.call(context.peer()):
            operation, path = split_path(read_list(read_ticket(request)))
            yield from find_operation(self.gets, operation)(call, path, lambda: not context.is_active(), None)

    def _act(self, call: Call, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        with _answering(context), call.usage.call(context.peer()):
            operation, body = read_action(request)
            names, _, content = body.partition(b"\n")
            act = find_operation(self.actions, operation.decode("utf-8", "replace"))
            yield answer(act(call, tuple(read_list(names)), content))


class _Threads(Executor):
    """A thread for each call, as its handler may wait long; none keeps the program from ending."""

    def __init__(self) -> None:
        self._running: set[threading.Thread] = set()

    def join(self, seconds: float) -> None:
        """Wait for the threads that still run, so long in all."""
        end = time.monotonic() + seconds
        for thread in list(self._running):
            thread.join(max(0.0, end - time.monotonic()))

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(work(*args, **kwargs))
            except BaseException as error:
                future.set_exception(error)
            finally:
                self._running.discard(threading.current_thread())

        thread = threading.Thread(target=run, name="a client's call", daemon=True)
        self._running.add(thread)
        thread.start()
        return future


@contextmanager
def _answering(context: grpc.ServicerContext) -> Iterator[None]:
    """Send an error to the client in the way of Arrow's own server."""
    try:
        yield
    except grpc.RpcError:
        raise  # the client has gone
    except Exception as error:
        _abort(context, error)


def _abort(context: grpc.ServicerContext, error: Exception) -> None:
    unknown = isinstance(error, AuthenticationError)
    context.set_trailing_metadata(
        (
            ("grpc-status-details-bin", error_to_text(error)),
            ("x-arrow-status", "5"),  # an I/O error
            ("x-arrow-status-detail-bin", b"Unauthenticated" if unknown else b"Failed"),
            ("x-arrow-status-message-bin", REFUSED.encode()),
        )
    )
    context.abort(grpc.StatusCode.UNAUTHENTICATED if unknown else grpc.StatusCode.UNKNOWN, REFUSED)


def _refuse_stranger(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    _abort(context, AuthenticationError("the call has no valid token"))
    return iter(())


def _options(quotas: Quotas) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", quotas.message_bytes + quotas.header_bytes + _FRAME_BYTES),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", _CALL_HEADER_BYTES),
        ("grpc.absolute_max_metadata_size", _CALL_HEADER_BYTES),
        ("grpc.max_concurrent_streams", quotas.streams),
        ("grpc.max_allowed_incoming_connections", _CONNECTIONS),
        ("grpc.server_handshake_timeout_ms", 1000 * _HANDSHAKE_SECONDS),
        ("grpc.max_connection_idle_ms", 1000 * _IDLE_SECONDS),
        # A client whose machine has gone away gives up its calls, too.
        ("grpc.keepalive_time_ms", 1000 * PING_SECONDS),
        ("grpc.keepalive_timeout_ms", 1000 * PING_SECONDS),
        ("grpc.http2.ping_timeout_ms", 1000 * PING_SECONDS),
        ("grpc.http2.min_ping_interval_without_data_ms", round(1000 * _SHORTEST_PING_SECONDS)),
        ("grpc.so_reuseport", 0),
    ]
