"""Record batches on disk that many queues share: they are taken back one by one, in any order.

Batches are appended to unnamed temporary files of a bounded size. A file goes away when its last batch has been taken,
so the disk space follows what is kept, and the number of open files follows the disk space, not the number of queues.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from io import FileIO

import pyarrow as pa

from topology.tasks.spill_room import spill_room

FILE_BYTES = 256 * 1024 * 1024
"""A file of this size gets no more batches."""

LEAST_FILE_BYTES = 4 * 1024 * 1024
FILES = 8
"""A file is as large as this part of all that is on disk, within the two bounds above. So there are few files, and what
has been taken from a file that is not empty yet is little beside what waits."""


@dataclass
class _File:
    content: FileIO
    end: int = 0
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Spilled:
    """A batch on disk."""

    file: _File
    offset: int
    length: int


class SpillFiles:
    """Not thread-safe. Cost: one write and one read for each batch.

    file_bytes:  how large files may be.
    least_bytes: how large they may be in any case.
    keeps_one:   an empty file is used again, where batches come and go all the time.
    """

    def __init__(
        self,
        directory: str | None = None,
        file_bytes: int = FILE_BYTES,
        least_bytes: int = LEAST_FILE_BYTES,
        keeps_one: bool = False,
    ) -> None:
        self._keeps_one = keeps_one
        self._directory = directory
        self._room = spill_room(directory)
        self._file_bytes = file_bytes
        self._least_bytes = least_bytes
        self._files: list[_File] = []
        self.nbytes = 0

    @property
    def used_bytes(self) -> int:
        """The size of all files, with what has been taken from them."""
        return sum(file.end for file in self._files)

    @property
    def open_files(self) -> int:
        """The number of files."""
        return len(self._files)

    def write(self, rows: pa.RecordBatch) -> Spilled:
        """Put a batch on disk. If that is full, `OSError` is raised, and nothing has changed."""
        out = pa.BufferOutputStream()
        # A stream of one batch, because a bare batch would lack its dictionaries.
        with pa.ipc.new_stream(out, rows.schema) as writer:
            writer.write_batch(rows)
        payload = out.getvalue()
        self._room.take(payload.size)
        try:
            return self._written(payload)
        except BaseException:
            self._room.disk.add(-payload.size)
            raise

    def _written(self, payload: pa.Buffer) -> Spilled:
        if not self._files or self._files[-1].end >= min(
            self._file_bytes, max(self._least_bytes, self.nbytes // FILES)
        ):
            # Without a buffer: a disk that is full says so at once, and what was written is written.
            made = tempfile.TemporaryFile(buffering=0, prefix="interlace-", dir=self._directory)  # noqa: SIM115
            self._files.append(_File(made))
        file = self._files[-1]
        file.content.seek(file.end)
        left = memoryview(payload)
        while left:
            left = left[file.content.write(left) :]
        spilled = Spilled(file, file.end, payload.size)
        file.end += payload.size
        file.kept += payload.size
        self.nbytes += payload.size
        return spilled

    def take(self, spilled: Spilled) -> pa.RecordBatch:
        """Read a batch and give its space back."""
        spilled.file.content.seek(spilled.offset)
        content = bytearray(spilled.length)
        left = memoryview(content)
        while left:
            count = spilled.file.content.readinto(left)
            assert count, "a batch on disk is whole"
            left = left[count:]
        self.drop(spilled)
        with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
            return reader.read_next_batch()

    def drop(self, spilled: Spilled) -> None:
        """Give the space of a batch back without reading it."""
        spilled.file.kept -= spilled.length
        self.nbytes -= spilled.length
        if spilled.file.kept == 0:
            self._room.disk.add(-spilled.file.end)
            if self._keeps_one and spilled.file is self._files[-1]:
                spilled.file.content.truncate(0)
                spilled.file.end = 0
                return
            spilled.file.content.close()
            self._files.remove(spilled.file)

    def close(self) -> None:
        """Drop everything."""
        self._room.disk.add(-self.used_bytes)
        for file in self._files:
            file.content.close()
        self._files.clear()
        self.nbytes = 0

    def __del__(self) -> None:
        # Whoever holds them may just be forgotten, as the tasks of a topology that stops are.
        self.close()
