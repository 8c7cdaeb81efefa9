"""Tables in files: Parquet, CSV, JSON lines and Arrow IPC, one file or many, read batch by batch."""

from __future__ import annotations

import glob
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from interlace.files.csv_columns import CsvColumns, convert_options, parse_options, with_types
from interlace.files.errors import FileError, MissingFileError, did_you_mean
from interlace.files.formats import COMPRESSED, Format, format_of, require_format
from interlace.files.read_options import ReadOptions

BATCH_ROWS = 1 << 16


class Table(ABC):
    """Rows in a fixed order.

    path:         as the user names it.
    schema:       all columns.
    rows:         how many rows it has, or about how many; None if nobody knows.
    can_reread:   whether `batches` may be called again.
    is_headless:  the names of the columns look like values: the file has no header, probably.
    """

    path: str
    schema: pa.Schema
    rows: int | None = None
    can_reread: bool = True
    is_headless: bool = False

    @abstractmethod
    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, with these columns."""


class FileTable(Table):
    """One file, or several files of one format one after the other, in the order of their names."""

    def __init__(self, path: str, options: ReadOptions) -> None:
        self.path = path
        files = matching_files(path, options.format)
        kind = require_format(files[0], options.format, "--format")
        if kind == "csv":
            columns = CsvColumns.of_file(files[0], options)
            self.is_headless = columns.looks_headless
            self._dataset = _csv_dataset(files, options, columns)
        else:
            self._dataset = _dataset(path, files, kind)
            if kind == "jsonl":
                wanted = with_types(self._dataset.schema, options)
                self._dataset = pa.dataset.dataset(files, schema=wanted, format="json")
        self.schema = with_types(self._dataset.schema, options, is_text=False)
        self.rows = _row_count(self._dataset, kind, files)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        scanner = self._dataset.scanner(columns=list(columns), batch_size=BATCH_ROWS)
        wanted = pa.schema([self.schema.field(name) for name in columns])
        try:
            for batch in scanner.to_batches():
                if batch.num_rows:
                    yield cast(self.path, batch, wanted)
        except pa.ArrowInvalid as error:
            raise conversion_error(self.path, error) from None


def cast(path: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with the types of a schema that has the same columns; without the metadata of files."""
    try:
        return batch.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FileError(f"'{path}': {str(error).strip().splitlines()[0]}") from None


def conversion_error(path: str, error: Exception) -> FileError:
    """The error of a value that does not have the type of its column."""
    text = str(error).strip().splitlines()[0]
    remedy = ": name the type of that column, such as --type NAME=double" if "onversion" in text else ""
    return FileError(f"'{path}': {text}{remedy}")


def matching_files(path: str, given: Format | None) -> list[str]:
    """The files that a path, a directory or a glob names, in order; raises MissingFileError if there are none."""
    expanded = os.path.expanduser(path.removeprefix("file://"))
    if "://" in expanded:
        raise FileError(f"'{path}' is not on this machine: copy it here, or pipe it in, with '-' in its place")
    if os.path.isdir(expanded):
        found = sorted(_files_below(expanded))
        kept = [file for file in found if given is not None or format_of(file) is not None]
        if not kept:
            raise MissingFileError(f"the directory '{path}' holds no Parquet, CSV, JSON lines or Arrow files")
    elif os.path.exists(expanded):
        kept = [expanded]
    else:
        kept = sorted(file for file in glob.glob(expanded, recursive=True) if os.path.isfile(file))
        if not kept:
            raise MissingFileError(_missing(path, expanded))
    kinds = {given or format_of(file) for file in kept}
    if len(kinds) > 1:
        names = ", ".join(str(kind) for kind in sorted(map(str, kinds)))
        raise FileError(f"'{path}' holds files of several formats ({names}): name one, such as '{path}/*.parquet'")
    return kept


def _files_below(directory: str) -> Iterator[str]:
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        yield from (os.path.join(folder, name) for name in names if not name.startswith((".", "_")))


def _missing(path: str, expanded: str) -> str:
    if glob.has_magic(expanded):
        return f"no file matches '{path}'"
    folder = os.path.dirname(expanded) or "."
    if not os.path.isdir(folder):
        return f"there is no file '{path}', and no directory '{os.path.dirname(path)}'"
    known = [name for name in sorted(os.listdir(folder)) if format_of(name) is not None]
    return f"there is no file '{path}'" + did_you_mean(os.path.basename(expanded), known)


def _csv_dataset(files: list[str], options: ReadOptions, columns: CsvColumns) -> Any:
    has_header = options.header and not options.column_names
    scan = pa.dataset.CsvFragmentScanOptions(
        convert_options=convert_options(options),
        read_options=pa.csv.ReadOptions(column_names=None if has_header else columns.schema.names),
    )
    kind = pa.dataset.CsvFileFormat(parse_options=parse_options(files[0], options), default_fragment_scan_options=scan)
    return pa.dataset.dataset(files, schema=columns.schema, format=kind)


def _dataset(path: str, files: list[str], kind: Format) -> Any:
    try:
        return pa.dataset.dataset(files, format={"parquet": "parquet", "arrow": "ipc", "jsonl": "json"}[kind])
    except pa.ArrowInvalid as error:
        if kind == "arrow" and "magic" in str(error).lower():
            raise FileError(f"'{path}' is an Arrow stream, not a file: read it with '-' and < {path}") from None
        raise FileError(f"'{path}' cannot be read as {kind}: {str(error).splitlines()[0]}") from None


def _row_count(dataset: Any, kind: Format, files: list[str]) -> int | None:
    """The number of rows, from what the files say about themselves, or from their size and the length of some lines."""
    if kind in ("parquet", "arrow"):
        return int(dataset.count_rows())
    size = sum(os.path.getsize(file) for file in files)
    with pa.input_stream(files[0]) as stream:
        head = stream.read(1 << 16)
    lines = head.count(b"\n")
    return None if files[0].endswith(COMPRESSED) or not lines else max(lines, round(size * lines / len(head)))
