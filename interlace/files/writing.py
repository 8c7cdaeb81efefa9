"""Writes record batches to files that appear whole or not at all, or to a stream."""

from __future__ import annotations

import json
import os
import tempfile
from abc import ABC, abstractmethod
from contextlib import suppress
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa

from interlace.files.errors import FileError
from interlace.files.formats import Format
from interlace.files.json_text import json_lines, plain


class Writer(ABC):
    """Writes batches of one schema to an open file."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows."""

    def close(self) -> None:  # noqa: B027  most have nothing to end
        """Write what comes at the end; the file itself stays open."""


class CsvWriter(Writer):
    """Lines of comma-separated values below a header."""

    def __init__(self, out: IO[bytes], schema: pa.Schema) -> None:
        import pyarrow.csv

        self._out = out
        self._module = pyarrow.csv
        self._others = [number for number, kind in enumerate(schema.types) if not _csv_has(kind)]
        self._write(schema.empty_table(), header=True)

    def write(self, batch: pa.RecordBatch) -> None:
        self._write(pa.Table.from_batches([batch]), header=False)

    def _write(self, table: pa.Table, *, header: bool) -> None:
        for number in self._others:
            texts = [_as_text(value) for value in table.column(number).to_pylist()]
            table = table.set_column(number, table.schema.names[number], pa.array(texts, pa.string()))
        self._module.write_csv(table, self._out, self._module.WriteOptions(include_header=header))


class JsonLinesWriter(Writer):
    """One JSON object a line."""

    def __init__(self, out: IO[bytes], schema: pa.Schema) -> None:
        self._out = out

    def write(self, batch: pa.RecordBatch) -> None:
        self._out.write(json_lines(batch))


class ArrowWriter(Writer):
    """Arrow IPC: the file format in files, the stream format elsewhere."""

    def __init__(self, out: IO[bytes], schema: pa.Schema, *, is_file: bool) -> None:
        import pyarrow.ipc

        self._writer = (pyarrow.ipc.new_file if is_file else pyarrow.ipc.new_stream)(out, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class ParquetWriter(Writer):
    """A Parquet file; small batches are gathered into row groups."""

    GROUP_ROWS = 1 << 17

    def __init__(self, out: IO[bytes], schema: pa.Schema) -> None:
        import pyarrow.parquet

        self._writer = pyarrow.parquet.ParquetWriter(out, schema)
        self._gathered: list[pa.RecordBatch] = []
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._gathered.append(batch)
        self._rows += batch.num_rows
        if self._rows >= self.GROUP_ROWS:
            self._write_group()

    def close(self) -> None:
        if self._gathered:
            self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._gathered))
        self._gathered, self._rows = [], 0


def writer_to(out: IO[bytes], schema: pa.Schema, kind: Format, *, is_file: bool = False) -> Writer:
    """The writer of a format."""
    match kind:
        case "csv":
            return CsvWriter(out, schema)
        case "jsonl":
            return JsonLinesWriter(out, schema)
        case "arrow":
            return ArrowWriter(out, schema, is_file=is_file)
        case "parquet":
            return ParquetWriter(out, schema)


class NewFile:
    """A file that takes its name when it is complete: until then what had the name before stays.

    A context manager: leaving it with an error removes what was written.
    """

    def __init__(self, path: str, schema: pa.Schema, kind: Format) -> None:
        self.path = os.path.realpath(os.path.expanduser(path))
        folder, name = os.path.split(self.path)
        try:
            handle, self._written = tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=folder)
        except OSError as error:
            raise FileError(f"'{path}' cannot be written: {error.strerror}: {folder}") from None
        os.fchmod(handle, _mode_of_new_files())
        self._out = os.fdopen(handle, "wb")
        self._writer = writer_to(self._out, schema, kind, is_file=True)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows."""
        self._writer.write(batch)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._writer.close()
                self._out.flush()
                os.fsync(self._out.fileno())
                os.replace(self._written, self.path)
            else:
                with suppress(Exception):
                    self._writer.close()  # frees what it holds
        finally:
            self._out.close()
            if os.path.exists(self._written):
                os.unlink(self._written)


def _mode_of_new_files() -> int:
    """The permissions that `open` would give; a temporary file has none for others."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def _csv_has(kind: pa.DataType) -> bool:
    """Whether Arrow writes this type to CSV as people expect it."""
    tests = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_string,
        pa.types.is_large_string,
    )
    times = (pa.types.is_timestamp, pa.types.is_date, pa.types.is_time)
    return any(test(kind) for test in (*tests, *times, pa.types.is_null, pa.types.is_decimal))


def _as_text(value: Any) -> str | None:
    """A value of another type: text as it is, the rest as JSON."""
    found = plain(value)
    return found if found is None or isinstance(found, str) else json.dumps(found, ensure_ascii=False)
