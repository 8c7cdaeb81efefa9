"""Where files of results are: a directory, or a prefix of an S3 bucket. A file appears whole or not at all."""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from topology.graph.errors import StoreError

_UNFINISHED = ".unfinished-"


class ResultFiles(ABC):
    """Files by name. Every call may raise `OSError`."""

    @abstractmethod
    def put(self, name: str, content: pa.Buffer) -> None:
        """Make a file, or replace it. When this returns it survives; nobody ever sees a part of it."""

    @abstractmethod
    def get(self, name: str) -> pa.Buffer:
        """Return the content of a file."""

    @abstractmethod
    def names(self) -> list[str]:
        """The names of all files."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove a file; nothing happens if it is gone."""


class DirectoryFiles(ResultFiles):
    """Files of a directory, which is made if need be. `pyarrow.fs` cannot sync, so this uses the calls of `os`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def put(self, name: str, content: pa.Buffer) -> None:
        # Processes of several machines may write to one directory, and have the same number.
        unfinished = self._directory / f"{_UNFINISHED}{secrets.token_hex(8)}-{name}"
        with open(unfinished, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, self._directory / name)
        directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def get(self, name: str) -> pa.Buffer:
        return pa.py_buffer((self._directory / name).read_bytes())

    def names(self) -> list[str]:
        return [name for name in os.listdir(self._directory) if not name.startswith(_UNFINISHED)]

    def delete(self, name: str) -> None:
        (self._directory / name).unlink(missing_ok=True)


class BucketFiles(ResultFiles):
    """Objects below a prefix. An object appears when it is closed."""

    def __init__(self, filesystem: pafs.FileSystem, root: str) -> None:
        self._files = filesystem
        self._root = root.rstrip("/")

    def put(self, name: str, content: pa.Buffer) -> None:
        with self._files.open_output_stream(f"{self._root}/{name}") as out:
            out.write(content)

    def get(self, name: str) -> pa.Buffer:
        with self._files.open_input_file(f"{self._root}/{name}") as file:
            return file.read_buffer()

    def names(self) -> list[str]:
        found = self._files.get_file_info(pafs.FileSelector(self._root, allow_not_found=True))
        return [info.base_name for info in found]

    def delete(self, name: str) -> None:
        try:
            self._files.delete_file(f"{self._root}/{name}")
        except FileNotFoundError:
            pass


def open_files(place: str | Path) -> ResultFiles:
    """Open a directory (a path, or file:///path) or a prefix of a bucket (s3://bucket/prefix?options)."""
    parts = urlsplit(str(place))
    if parts.scheme == "s3":
        try:
            filesystem, root = pafs.FileSystem.from_uri(str(place))
        except (OSError, pa.ArrowInvalid):  # not `from error`: it may quote the URI, which may hold keys
            raise StoreError("the URI of the bucket cannot be used: check bucket, region and endpoint") from None
        return BucketFiles(filesystem, root)
    if len(parts.scheme) > 1 and parts.scheme != "file":
        raise StoreError(f"no files in {parts.scheme}://; give a directory, file:///directory or s3://bucket/prefix")
    return DirectoryFiles(Path(unquote(parts.path) if parts.scheme == "file" else place))
