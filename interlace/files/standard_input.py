"""Standard input as a table. Text is read line by line as it comes, so that a live stream is joined while it moves."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from typing import IO

import pyarrow as pa
import pyarrow.ipc
import pyarrow.json

from interlace.files.csv_columns import CsvColumns, with_types
from interlace.files.errors import FileError
from interlace.files.formats import sniff
from interlace.files.read_options import ReadOptions
from interlace.files.tables import FileTable, Table, cast, conversion_error

NAMES = ("-", "/dev/stdin")
CHUNK_BYTES = 1 << 20


class StandardInput(Table):
    """What is piped into the program; it can be read once."""

    can_reread = False

    def __init__(self, path: str, stream: IO[bytes], options: ReadOptions) -> None:
        self.path = path
        chunks = _Chunks(stream)
        head = chunks.take()
        kind = options.format or sniff(head)
        self._batches: Iterator[pa.RecordBatch]
        if kind == "parquet":
            self.schema, self._batches = _spooled(chunks, options)
        elif kind == "arrow":
            reader = pa.ipc.open_stream(pa.PythonFile(chunks.whole(), mode="r"))
            self.schema, self._batches = with_types(reader.schema, options, is_text=False), iter(reader)
        else:
            lines = _lines(chunks)
            first = next(lines, b"")
            parse: Callable[[bytes], pa.RecordBatch]
            if kind == "csv":
                if options.header and not options.column_names and first.count(b"\n") < 2:
                    first += next(lines, b"")  # a header alone does not tell types
                columns = CsvColumns.of_text(path, options, first)
                self.is_headless = columns.looks_headless
                self.schema, parse = columns.schema, columns.parse
                if options.header and not options.column_names:
                    first = first.partition(b"\n")[2]
            else:
                self.schema, parse = _json(path, first, options)
            self._batches = _parsed(path, first, lines, parse)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = pa.schema([self.schema.field(name) for name in columns])
        for batch in self._batches:
            if batch.num_rows:
                yield cast(self.path, batch.select(list(columns)), wanted)


class _Chunks:
    """Reads what is there, without waiting for more; the first chunk may be looked at before."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._head = b""

    def take(self) -> bytes:
        """Look at the first chunk."""
        self._head = self._read()
        return self._head

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._head or self._read():
            self._head = b""
            yield chunk

    def whole(self) -> IO[bytes]:
        """All of it, as a file that is read from the beginning to the end."""
        head, self._head = self._head, b""
        return _Rejoined(head, self._stream)  # type: ignore[return-value]

    def _read(self) -> bytes:
        read = getattr(self._stream, "read1", self._stream.read)
        found: bytes = read(CHUNK_BYTES)
        return found


class _Rejoined:
    """A stream whose first bytes have been read already."""

    closed = False

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head = BytesIO(head)
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        return self._head.read(size) or self._stream.read(size)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True


def _lines(chunks: _Chunks) -> Iterator[bytes]:
    """Whole lines; a line break inside of quotes is none."""
    rest = b""
    for chunk in chunks:
        text = rest + chunk
        end = text.rfind(b"\n") + 1
        while end and text.count(b'"', 0, end) % 2:
            end = text.rfind(b"\n", 0, end - 1) + 1
        rest = text[end:]
        if end:
            yield text[:end]
    if rest:
        yield rest


def _parsed(
    path: str, first: bytes, lines: Iterator[bytes], parse: Callable[[bytes], pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    try:
        if first.strip():
            yield parse(first)
        for text in lines:
            if text.strip():
                yield parse(text)
    except pa.ArrowInvalid as error:
        raise conversion_error(path, error) from None


def _json(path: str, first: bytes, options: ReadOptions) -> tuple[pa.Schema, Callable[[bytes], pa.RecordBatch]]:
    if not first.strip():
        raise FileError(f"'{path}' is empty: JSON lines need at least one row, to know the columns")
    try:
        found = pa.json.read_json(BytesIO(first)).schema
    except pa.ArrowInvalid as error:
        raise FileError(f"'{path}' cannot be read as JSON lines: {str(error).splitlines()[0]}") from None
    schema = with_types(found, options)

    def parse(text: bytes) -> pa.RecordBatch:
        options = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        read = pa.json.ReadOptions(use_threads=False, block_size=len(text) + 1)
        table = pa.json.read_json(BytesIO(text), read_options=read, parse_options=options)
        return table.select(schema.names).combine_chunks().to_batches()[0]

    return schema, parse


def _spooled(chunks: _Chunks, options: ReadOptions) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """A Parquet file begins at its end: it is written to disk first."""
    file = tempfile.NamedTemporaryFile(suffix=".parquet")  # noqa: SIM115  it lives as long as the rows are read
    shutil.copyfileobj(chunks.whole(), file)
    file.flush()
    table = FileTable(file.name, options)

    def batches() -> Iterator[pa.RecordBatch]:
        with file:
            yield from table.batches(table.schema.names)

    return table.schema, batches()
