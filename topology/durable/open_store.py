"""Opens the store that a URI names."""

from __future__ import annotations

import errno
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from topology.durable.disk_store import DiskStore
from topology.durable.local_disk import LocalDisk
from topology.durable.names import new_token
from topology.durable.object_store import ObjectStore
from topology.durable.store import Store
from topology.graph.errors import StoreError

_KNOWN = "give a directory, file:///directory or s3://bucket/prefix"


def open_store(uri: str | Path, folder: str = "") -> Store:
    """Open a directory (a path, or file:///path), which is made if need be, or a prefix of an S3 bucket.

    A store holds one log. `folder` is a place below the URI, for programs that keep several.

    The URI of a bucket may have the options of `pyarrow.fs.S3FileSystem`: s3://bucket/prefix?region=eu-west-1, or
    ?endpoint_override=host:port&scheme=http for another S3 server. A store that cannot be written to is refused.
    """
    text = str(uri)
    parts = urlsplit(text)
    # A drive of Windows is a single letter, and no scheme.
    if len(parts.scheme) > 1:
        if parts.scheme == "file":
            if parts.netloc not in ("", "localhost"):
                raise StoreError(
                    f"{text!r} names the machine {parts.netloc!r}: a local path has three slashes, file:///"
                )
            if parts.query or parts.fragment:
                raise StoreError(f"{text!r}: a directory has no options; write ? as %3F and # as %23")
            text = unquote(parts.path)
        elif parts.scheme == "s3":
            return _bucket(text, folder)
        else:
            raise StoreError(f"no store for {parts.scheme}://; {_KNOWN}")
    if not text:
        raise StoreError(f"an empty path is no store: {_KNOWN}")
    return _directory(Path(text) / folder)


def place_below(uri: str | Path, folder: str) -> str:
    """The URI that `open_store` takes for the same place as `open_store(uri, folder)`."""
    text = str(uri)
    if len(urlsplit(text).scheme) <= 1:
        return str(Path(text).absolute() / folder)
    place, question, options = text.partition("?")
    return f"{place.rstrip('/')}/{quote(folder)}{question}{options}"


def _directory(path: Path) -> Store:
    try:
        _make(path)
        store = DiskStore(LocalDisk(path.resolve()))
        _try(store)
    except OSError as error:
        raise StoreError(
            f"cannot write to the directory {path}: {error.strerror or error}; {_KNOWN} that you own"
        ) from error
    return store


def _make(path: Path) -> None:
    """Make a directory and those above it, so that they survive: each is an entry of the one above."""
    if path.is_dir():
        return
    if path.exists():
        raise NotADirectoryError(errno.ENOTDIR, "Not a directory", str(path))
    _make(path.parent)
    path.mkdir(exist_ok=True)
    LocalDisk(path.parent).sync_directory()


def _bucket(uri: str, folder: str) -> Store:
    try:
        filesystem, root = pafs.FileSystem.from_uri(uri)
        store = ObjectStore(filesystem, f"{root}/{folder}".rstrip("/"))
        _try(store)
    except (OSError, pa.ArrowInvalid) as error:
        shown = uri.partition("?")[0].rpartition("@")[2].removeprefix("s3://")
        # Not `from error`: it may quote the URI, which may hold keys.
        raise StoreError(
            f"cannot write to {shown} on S3: {str(error).replace(uri, shown)}; "
            f"check bucket, region, endpoint and credentials"
        ) from None
    return store


def _try(store: Store) -> None:
    probe = f"probe-{new_token()}"
    store.mark(probe)
    store.unmark(probe)
