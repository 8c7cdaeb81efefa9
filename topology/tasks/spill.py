"""A queue of record batches that keeps a bounded part in memory and the rest on disk.

It is used where rows wait for other rows that may come much later: the gate waits for its slowest source, and blocking
the fast ones could wait for ever. Rows that do not fit in memory go to one unnamed temporary file, which the operating
system removes with the process.
"""

from __future__ import annotations

import tempfile
from collections import deque
from dataclasses import dataclass
from typing import IO

import pyarrow as pa

from topology.graph.messages import rows_bytes

DEFAULT_MEMORY = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _OnDisk:
    offset: int
    length: int


class SpillQueue:
    """First in, first out. Cost: one write and one read for each batch beyond the memory bound."""

    def __init__(self, memory: int = DEFAULT_MEMORY, directory: str | None = None) -> None:
        self._memory = memory
        self._directory = directory
        self._items: deque[pa.RecordBatch | _OnDisk] = deque()
        self._in_memory = 0
        self._on_disk = 0
        self._file: IO[bytes] | None = None
        self._end = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the batches held in memory."""
        return self._in_memory

    @property
    def disk_bytes(self) -> int:
        """Bytes of the batches on disk."""
        return self._on_disk

    def append(self, rows: pa.RecordBatch) -> None:
        """Add a batch at the end."""
        size = rows_bytes(rows)
        if self._items and self._in_memory + size > self._memory:
            written = self._write(rows)
            self._items.append(written)
            self._on_disk += written.length
        else:
            self._items.append(rows)
            self._in_memory += size

    def popleft(self) -> pa.RecordBatch:
        """Remove and return the first batch; `IndexError` when empty."""
        item = self._items.popleft()
        if isinstance(item, _OnDisk):
            rows = self._read(item)
            self._on_disk -= item.length
            if self._on_disk == 0:
                self._truncate()
            return rows
        self._in_memory -= rows_bytes(item)
        return item

    def close(self) -> None:
        """Drop all batches and free the disk space."""
        self._items.clear()
        self._in_memory = self._on_disk = 0
        if self._file is not None:
            self._file.close()
            self._file = None
            self._end = 0

    def __del__(self) -> None:
        # Stopping a task does not notify it, so it cannot close its queues itself.
        self.close()

    def _write(self, rows: pa.RecordBatch) -> _OnDisk:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="interlace-", dir=self._directory)  # noqa: SIM115
        sink = pa.BufferOutputStream()
        # A stream of one batch, because a bare batch would lack its dictionaries.
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_batch(rows)
        payload = sink.getvalue()
        self._file.seek(self._end)
        self._file.write(payload)
        written = _OnDisk(self._end, payload.size)
        self._end += payload.size
        return written

    def _read(self, item: _OnDisk) -> pa.RecordBatch:
        assert self._file is not None
        self._file.seek(item.offset)
        with pa.ipc.open_stream(pa.py_buffer(self._file.read(item.length))) as reader:
            return reader.read_next_batch()

    def _truncate(self) -> None:
        assert self._file is not None
        self._file.truncate(0)
        self._end = 0
