"""A client that says whatever it likes: raw calls to a served join, and a check that the join still works."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pyarrow as pa

from tests.topology.flight.hostile_server import SCHEMA
from topology import Endpoint, FlightClient

ROOT = Path(__file__).parents[3]
SERVICE = "/arrow.flight.protocol.FlightService/"
ANSWER_SECONDS = 120.0


def field(number: int, content: bytes) -> bytes:
    """A protobuf field that has a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def flight_data(header: bytes, body: bytes = b"", path: Sequence[str | bytes] = (), metadata: bytes = b"") -> bytes:
    """A FlightData message; the first of a stream names its operation."""
    parts = [field(3, part.encode() if isinstance(part, str) else part) for part in path]
    descriptor = field(1, b"\x08\x01" + b"".join(parts)) if path else b""
    return descriptor + field(2, header) + (field(3, metadata) if metadata else b"") + field(1000, body)


def ipc_messages(rows: pa.RecordBatch, compression: str | None = None) -> list[tuple[bytes, bytes]]:
    """The header and the body of each IPC message of a stream of one batch."""
    out = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(out, rows.schema, options=options) as stream:
        stream.write_batch(rows)
    messages = pa.ipc.MessageReader.open_stream(out.getvalue())
    return [(bytes(message.metadata), bytes(message.body) if message.body else b"") for message in messages]


@dataclass(frozen=True)
class Outcome:
    """How a call ended; `rows` is what the server says it has taken, even if it refused the rest."""

    rows: int
    code: str
    kind: str
    text: str

    @property
    def refused(self) -> bool:
        return self.code != "OK"


class Victim:
    """A served join in a process of its own."""

    def __init__(self, **quotas: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.topology.flight.hostile_server", json.dumps(quotas)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        given = json.loads(self._process.stdout.readline())
        self.pid: int = given["pid"]
        self.endpoints = {name: Endpoint(*where) for name, where in given["endpoints"].items()}
        self._clients = {name: FlightClient(self.endpoints[name]) for name in ("R", "S", "results")}
        self._results = self._clients["results"].results("results")
        self._round = 0
        self.channel = self.connect()

    def connect(self) -> Any:
        """A new connection, without any of our client's manners."""
        address = self.endpoints["R"].location.removeprefix("grpc://")
        return grpc.insecure_channel(
            address,
            options=[("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)],
        )

    def headers(self, name: str = "R") -> list[tuple[str, str | bytes]]:
        return [("authorization", f"Bearer {self.endpoints[name].token}")]

    def put(self, messages: Iterable[bytes], headers: Any = None) -> Outcome:
        """Make one call of the kind that sends rows."""
        return self.outcome(self.begin_put(messages, headers))

    def begin_put(self, messages: Iterable[bytes], headers: Any = None, method: str = "DoPut") -> Any:
        """Begin such a call; `outcome` waits for its end."""
        call = self.channel.stream_stream(SERVICE + method)
        return call(iter(messages), metadata=self.headers() if headers is None else headers)

    def ask(self, method: str, request: bytes, headers: Any = None) -> Outcome:
        """Make one call of a kind that has one message."""
        call = self.channel.unary_stream(SERVICE + method)
        return self.outcome(call(request, metadata=self.headers() if headers is None else headers))

    def works(self) -> None:
        """Send good rows to both streams; their matches, and nothing else, must come out."""
        self._round += 1
        keys = [10 * self._round + position for position in range(5)]
        for stream in ("R", "S"):
            self._clients[stream].send(stream, "good", rows_of([2 * self._round] * 5, keys))
        # Rows pass the gate when no earlier ones can come; these match nothing.
        self._clients["R"].send("R", "good", rows_of([2 * self._round + 1], [-1]))
        self._clients["S"].send("S", "good", rows_of([2 * self._round + 1], [-2]))
        expected = Counter((left, right) for left in keys for right in keys if left <= right)
        found: Counter[tuple[int, int]] = Counter()
        for batch in self._results:
            found.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
            if found.total() >= expected.total():
                break
        assert found == expected

    def peak_bytes(self) -> int:
        """The most memory that the process has had."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])

    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self.channel.close()
        self._results.close()
        for client in self._clients.values():
            client.close()
        self._process.kill()
        self._process.communicate()

    def outcome(self, call: Any) -> Outcome:
        """Wait for the end of a call."""
        rows = 0
        try:
            for answer in call:
                rows = _rows(answer)
        except grpc.RpcError as error:
            return _refusal(error, rows)
        return Outcome(rows, "OK", "", "")


def rows_of(times: list[int], keys: list[int]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(times), pa.array(keys), pa.array([f"n{key}" for key in keys])], schema=SCHEMA)


def _rows(answer: bytes) -> int:
    """The rows in an acknowledgement ("1200 12": rows and batches), which is the only field of its message."""
    rows = answer[2:].partition(b" ")[0]
    return int(rows) if rows.isdigit() else 0


def _refusal(error: Any, rows: int) -> Outcome:
    kind = text = ""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            content = json.loads(value)
            kind, text = content["kind"], str(content["arguments"])
    return Outcome(rows, error.code().name, kind, text or str(error.details()))
