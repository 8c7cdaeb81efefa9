"""A store on S3 or another object store: an object per group, which is never changed, and an object per mark.

    <root>/marks/epoch-00000002-…
    <root>/segments/segment-000000000007-00000002-…/000000000012

There is no append and no rename. An object appears whole when it is closed, and a listing shows it from then on: S3 has
promised that since 2020. A group that is written again is the same object with the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.fs as pafs

from topology.durable.disk import Piece
from topology.durable.store import Store

READERS = 8


class ObjectStore(Store):
    """Any filesystem of `pyarrow.fs` whose files appear whole, when they are closed.

    readers: how many objects are read at once; each takes a round trip.
    """

    def __init__(self, filesystem: pafs.FileSystem, root: str, readers: int = READERS) -> None:
        self._files = filesystem
        self._readers = readers
        self._marks = f"{root}/marks"
        self._segments = f"{root}/segments"

    def write(self, segment: str, group: int, at: int, pieces: Sequence[Piece]) -> None:
        self._put(f"{self._segments}/{segment}/{group:012}", pieces)

    def sync(self, segment: str) -> None:
        """An object survives as soon as it can be seen."""

    def read(self, segment: str) -> list[pa.Buffer]:
        paths = sorted(f"{self._segments}/{segment}/{name}" for name in self._list(f"{self._segments}/{segment}"))
        if self._readers == 1:
            return list(map(self._get, paths))
        with ThreadPoolExecutor(self._readers, "read-segment") as readers:
            return list(readers.map(self._get, paths))

    def segments(self) -> list[str]:
        return self._list(self._segments)

    def size(self, segment: str) -> int:
        found = self._files.get_file_info(pafs.FileSelector(f"{self._segments}/{segment}", allow_not_found=True))
        return sum(info.size or 0 for info in found)

    def delete(self, segment: str) -> None:
        try:
            self._files.delete_dir(f"{self._segments}/{segment}")
        except FileNotFoundError:
            pass

    def mark(self, name: str) -> None:
        self._put(f"{self._marks}/{name}", [b"-"])

    def marks(self) -> list[str]:
        return self._list(self._marks)

    def unmark(self, name: str) -> None:
        try:
            self._files.delete_file(f"{self._marks}/{name}")
        except FileNotFoundError:
            pass

    def _list(self, folder: str) -> list[str]:
        found = self._files.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
        return [info.base_name for info in found]

    def _put(self, path: str, pieces: Sequence[Piece]) -> None:
        # Object stores have no folders; elsewhere they must be made.
        if self._files.type_name != "s3":
            self._files.create_dir(path.rpartition("/")[0], recursive=True)
        with self._files.open_output_stream(path) as out:
            for piece in pieces:
                out.write(piece)

    def _get(self, path: str) -> pa.Buffer:
        with self._files.open_input_file(path) as file:
            return file.read_buffer()
