"""Results that are kept on disk, for readers that come back for them.

A shelf writes batches to a file and returns the same batches, mapped from it: whoever holds them need not know where
they are. The file has no name any more once it is mapped, so its space is freed with the last of its batches, or with
the process.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence

import pyarrow as pa

FILE_BYTES = 16 * 1024 * 1024
"""Batches are gathered until they are worth a file."""


class ResultShelf:
    """Puts batches on disk. Cost of `put`: one write of the rows; reading them later may have to load them again."""

    def __init__(self, directory: str | None = None) -> None:
        self._directory = directory

    def put(self, batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Map a file with one batch or more, all of one schema, and return the batches."""
        descriptor, path = tempfile.mkstemp(prefix="interlace-", dir=self._directory)
        try:
            with os.fdopen(descriptor, "wb") as file, pa.ipc.new_stream(file, batches[0].schema) as writer:
                for rows in batches:
                    writer.write_batch(rows)
            with pa.memory_map(path) as mapped, pa.ipc.open_stream(mapped) as stream:
                return list(stream)
        finally:
            os.unlink(path)
