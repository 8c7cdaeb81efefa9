"""Serves a topology to other processes: a `ClientPort` in front of an `Ingest` and of the sinks' queues.

A call is checked in full before it reaches the ingest: token, operation, names, quotas, size, buffers, schema. While
the ingest waits for room the handler stops reading, and Flight's flow control makes the client wait.

Operations (`operations.py` says how they are named):
  put    send, stream, source        live rows; a batch's metadata may name another source, and the offset of its rows
  put    stage, stream, source, attempt
         They are acknowledged with the rows and batches taken so far ("1200 12"): now and then, for metadata without
         a batch, and at the end, even if the last batch is refused.
  action open, stream, source [, source before it] | pin, stream (body: schema) | commit, stream, source, attempt, rows
  action discard, stream, attempts   drops what attempts stage whose names begin so
  action offset, stream, source      answers with the rows that the source has sent
  action schema, stream              answers with the schema, or with nothing while it is not known
  action finish, stream [, source]
  action acknowledge, sink, number   forgets results up to this number; answered when that survives a failure
  action extent, sink                answers with the first number that is kept, the one behind the last, 1 at the end
  action columns, sink               answers with the schema of the results that have come, or with nothing
  action retain, sink                keeps results on disk until they are acknowledged, instead of making senders wait
  get    rows, sink, first [, end]   results from number `first` up to and without `end`, or all; waits for those that
                                     have not come. Any number of clients may ask, also beside the reader of `results`
  get    results, sink [, after [, "take over"]]
         One reader at a time; each batch has the number of its first row in its metadata (8 bytes, little-endian).
         A get acknowledges by that action. An exchange may also write numbers as metadata: those of results that it
         has dealt with. It is told first where it begins and what is there ("12 40"), and learns the end by a message
         without rows; it leaves by ending its side.
All of them also as an exchange, which a client can cancel at any time: its descriptor names the operation. The body of
an action is then the metadata of that message or of the next, and so is its answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import pyarrow as pa

from topology.checks.quotas import Quotas
from topology.checks.rows_decoder import sound_schema
from topology.entry.entry_of_lives import Entry
from topology.entry.explained_stop import ExplainedStop, Failure
from topology.entry.feeds import Delay, MicroBatchPart
from topology.flight.client_port import Call, Chunk, ClientPort
from topology.flight.operations import TAKE_OVER, Path, named_parts, read_counts, read_number, read_source
from topology.flight.results_server import ResultsServer
from topology.graph.errors import InputError, InterlaceError, QuotaError, TopologyError
from topology.graph.graph import Topology
from topology.graph.messages import rows_bytes
from topology.handle.endpoint import Endpoint
from topology.handle.results_queue import ResultsQueue
from topology.security.tokens import Authority, Grant, Right

ACKNOWLEDGED_BATCHES = 4
ACKNOWLEDGED_BYTES = 1024 * 1024
"""How much a handler takes before it acknowledges it without being asked."""


class TopologyServer:
    """Serves the inputs and sinks of one topology, or of one of its tasks, on a new port or on a given one.

    quotas:  what clients of a new port may use; a given port has its own.
    settled: waits until what has been acknowledged is so after a failure, too.
    """

    def __init__(
        self,
        topology: Topology,
        ingest: Entry,
        results: Mapping[str, ResultsQueue],
        failure: Failure = lambda: None,
        port: ClientPort | None = None,
        authority: Authority | None = None,
        quotas: Quotas | None = None,
        settled: Callable[[], None] = lambda: None,
    ) -> None:
        self._topology = topology
        self._ingest = ingest
        self._explained = ExplainedStop(failure)
        self._authority = authority or Authority()
        self._port = port or ClientPort(self._authority, quotas=quotas)
        self._tokens: dict[tuple[str, bool], str] = {}
        self._lock = threading.Lock()
        self._port.puts.update({"send": self._send, "stage": self._stage, "stage-micro-batch": self._stage_micro_batch})
        self._port.actions.update({"open-feed": self._open_feed, "commit-micro-batch": self._commit_micro_batch})
        self._port.actions.update(
            open=self._open,
            pin=self._pin,
            schema=self._schema,
            commit=self._commit,
            discard=self._discard,
            finish=self._finish,
            offset=self._offset,
        )
        ResultsServer(topology.name, results, self._port, failure, settled)

    def endpoint(self, stream: str, control: bool = False) -> Endpoint:
        """Return where to write an input or read a sink; with `control`, also to commit and finish the input."""
        with self._lock:
            key = (stream, control)
            if key not in self._tokens:
                self._tokens[key] = self._authority.issue(*grants(self._topology, stream, control))
            return self._port.endpoint(self._tokens[key])

    def close(self) -> None:
        """Stop listening."""
        self._port.close()

    def _send(self, call: Call, path: Path, chunks: Iterator[Chunk]) -> Iterator[bytes]:
        stream, default_source = named_parts(path, "stream", "source")
        self._require(call, Right.WRITE, stream, source=default_source)

        def take(rows: pa.RecordBatch, metadata: bytes) -> None:
            name, offset = self._source(metadata)
            source = name or default_source
            with self._explained, self._counted(call, stream, source):
                self._ingest.send(stream, source, rows, offset)

        return _acknowledged(self._named(stream, chunks), take)

    def _stage(self, call: Call, path: Path, chunks: Iterator[Chunk]) -> Iterator[bytes]:
        stream, source, attempt = named_parts(path, "stream", "source", "attempt")
        self._require(call, Right.WRITE, stream, source=source, attempt=attempt)

        def take(rows: pa.RecordBatch, metadata: bytes) -> None:
            self._ingest.stage(stream, source, attempt, rows, self._port.quotas)

        return _acknowledged(self._named(stream, chunks), take)

    def _open_feed(self, call: Call, path: Path, body: bytes) -> bytes:
        stream, feed, query = named_parts(path, "stream", "feed", "query")
        self._require(call, Right.WRITE, stream, source=feed, query=query)
        told = read_counts(f"stream '{stream}', feed '{feed}'", body or b"{}")
        take_over = bool(told.pop(TAKE_OVER, 0))
        with self._explained, self._counted(call, stream, feed):
            event_time = self._topology.require_input(stream).event_time
            delay = next((Delay(column, bound) for column, bound in told.items() if column == event_time), None)
            return str(self._ingest.open_feed(stream, feed, query, take_over, delay)).encode()

    def _stage_micro_batch(self, call: Call, path: Path, chunks: Iterator[Chunk]) -> Iterator[bytes]:
        stream, feed, query, number, attempt = named_parts(path, "stream", "feed", "query", "number", "attempt")
        self._require(call, Right.WRITE, stream, source=feed, query=query, attempt=attempt)
        part = MicroBatchPart(feed, query, read_number(f"stream '{stream}', feed '{feed}'", number), attempt)

        def take(rows: pa.RecordBatch, metadata: bytes) -> None:
            with self._explained:
                self._ingest.stage_micro_batch(stream, part, rows, self._port.quotas)

        return _acknowledged(self._named(stream, chunks), take)

    def _commit_micro_batch(self, call: Call, path: Path, body: bytes) -> bytes:
        stream, feed, query, number = named_parts(path, "stream", "feed", "query", "number")
        self._require(call, Right.WRITE, stream, source=feed, query=query)
        where = f"stream '{stream}', feed '{feed}'"
        attempts = read_counts(where, body)
        if len(attempts) > self._port.quotas.attempts:
            raise QuotaError(
                f"{where}: a micro-batch of {len(attempts):,} parts, and at most {self._port.quotas.attempts:,} are "
                f"taken: write fewer partitions, or raise Quotas(attempts=...)"
            )
        with self._explained:
            self._ingest.commit_micro_batch(stream, feed, query, read_number(where, number), attempts)
        return b""

    def _open(self, call: Call, path: Path, body: bytes) -> bytes:
        if len(path) == 3:
            stream, source, behind = named_parts(path, "stream", "source", "behind")
        else:
            (stream, source), behind = named_parts(path, "stream", "source"), ""
        self._require(call, Right.WRITE, stream, source=source)
        self._port.quotas.check_name("a source", behind)
        with self._explained, self._counted(call, stream, source):
            self._ingest.open(stream, source, behind or None)
            self._ingest.flush()
        return b""

    def _offset(self, call: Call, path: Path, body: bytes) -> bytes:
        stream, source = named_parts(path, "stream", "source")
        self._require(call, Right.WRITE, stream, source=source)
        return str(self._ingest.durable_offset(stream, source)).encode()

    def _pin(self, call: Call, path: Path, body: bytes) -> bytes:
        (stream,) = named_parts(path, "stream")
        self._require(call, Right.WRITE, stream)
        with _naming(stream):
            schema = sound_schema(body, self._port.quotas)
        self._ingest.pin(stream, schema)
        self._ingest.flush()
        return b""

    def _schema(self, call: Call, path: Path, body: bytes) -> bytes:
        (stream,) = named_parts(path, "stream")
        self._require(call, Right.WRITE, stream)
        schema = self._ingest.schema(stream)
        return b"" if schema is None else bytes(schema.serialize())

    def _commit(self, call: Call, path: Path, body: bytes) -> bytes:
        stream, source, attempt, rows = named_parts(path, "stream", "source", "attempt", "rows")
        self._require(call, Right.CONTROL, stream, source=source, attempt=attempt)
        count = read_number(f"stream '{stream}', source '{source}'", rows)
        with self._explained:
            self._ingest.commit(stream, source, attempt, count)
        return b""

    def _discard(self, call: Call, path: Path, body: bytes) -> bytes:
        stream, attempts = named_parts(path, "stream", "attempts")
        self._require(call, Right.CONTROL, stream, attempt=attempts)
        with self._explained:
            self._ingest.discard(stream, attempts)
        return b""

    def _finish(self, call: Call, path: Path, body: bytes) -> bytes:
        stream, source = (*path, None) if len(path) == 1 else named_parts(path, "stream", "source")
        self._require(call, Right.CONTROL, stream, source=source or "")
        with self._explained:
            self._ingest.finish(stream, source)
        return b""

    def _named(self, stream: str, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        """Name the stream in the refusals of its chunks."""
        with _naming(stream):
            yield from chunks

    def _source(self, metadata: bytes) -> tuple[str, int | None]:
        try:
            source, offset = read_source(metadata)
        except ValueError:
            raise InputError("the metadata of a batch must be the name of its source, as UTF-8") from None
        self._port.quotas.check_name("a source", source)
        return source, offset

    def _counted(self, call: Call, stream: str, source: str) -> AbstractContextManager[None]:
        return call.usage.source(stream, source, partial(self._ingest.is_open, stream))

    def _require(
        self, call: Call, right: Right, stream: str, source: str = "", attempt: str = "", query: str = ""
    ) -> None:
        self._topology.require_input(stream)
        call.caller.require(right, stream)
        self._port.quotas.check_name("a source", source)
        self._port.quotas.check_name("an attempt", attempt)
        self._port.quotas.check_name("a query", query)


def grants(topology: Topology, stream: str, control: bool) -> tuple[Grant, ...]:
    """Return the rights of an endpoint of `stream`."""
    if stream in topology.inputs:
        write = Grant(Right.WRITE, stream)
        return (write, Grant(Right.CONTROL, stream)) if control else (write,)
    if stream in topology.sinks:
        return (Grant(Right.READ, stream),)
    known = ", ".join(f"'{name}'" for name in [*topology.inputs, *topology.sinks]) or "none"
    raise TopologyError(f"topology '{topology.name}' has no input or sink '{stream}'; its inputs and sinks: {known}")


def _acknowledged(chunks: Iterator[Chunk], take: Callable[[pa.RecordBatch, bytes], None]) -> Iterator[bytes]:
    """Take the rows of a client until its end, or until some are refused; yield acknowledgements."""
    rows = batches = waiting_batches = waiting_bytes = 0
    try:
        for chunk in chunks:
            if chunk.rows is not None:
                take(chunk.rows, chunk.metadata)
                rows += chunk.rows.num_rows
                batches += 1
                waiting_batches += 1
                waiting_bytes += rows_bytes(chunk.rows)
                if waiting_batches < ACKNOWLEDGED_BATCHES and waiting_bytes < ACKNOWLEDGED_BYTES:
                    continue
            waiting_batches = waiting_bytes = 0
            yield f"{rows} {batches}".encode()
    except InterlaceError:
        yield f"{rows} {batches}".encode()  # before the refusal itself
        raise
    yield f"{rows} {batches}".encode()


@contextmanager
def _naming(stream: str) -> Iterator[None]:
    """Name the stream in a refusal of what a client sent to it."""
    try:
        yield
    except QuotaError as error:
        raise QuotaError(f"stream '{stream}': {error}") from None
    except InputError as error:
        if type(error) is not InputError:
            raise
        raise InputError(f"stream '{stream}': {error}") from None
