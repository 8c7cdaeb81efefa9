"""The columns of a CSV file: their names, and the types that samples from the whole file suggest.

Arrow looks at the first block only. A column that begins with whole numbers and goes on with fractions would then fail
in the middle of a long file. So samples are taken from several places of a file, and a column gets a type that fits all
of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv

from interlace.files.errors import FileError
from interlace.files.formats import COMPRESSED
from interlace.files.read_options import ReadOptions

FIRST_BYTES = 1 << 20
SAMPLE_BYTES = 1 << 16
SAMPLES = 16


class CsvColumns:
    """The names and types of the columns, and how to parse text that has them."""

    def __init__(self, path: str, options: ReadOptions, names: list[str], types: dict[str, pa.DataType]) -> None:
        self._path = path
        self._options = options
        self.schema = pa.schema([(name, types[name]) for name in names])

    @classmethod
    def of_file(cls, path: str, options: ReadOptions) -> CsvColumns:
        """Look at a file."""
        with pa.input_stream(path) as stream:
            head = stream.read(FIRST_BYTES)
            whole = len(head) < FIRST_BYTES
        columns = cls.of_text(path, options, head if whole else _whole_lines(head))
        if whole or path.endswith(COMPRESSED):  # no jumping around in those
            return columns
        with open(path, "rb") as file:
            for sample in _samples(file):
                columns._widen(sample)
        return columns

    @classmethod
    def of_text(cls, path: str, options: ReadOptions, text: bytes) -> CsvColumns:
        """Look at the beginning of a file."""
        if not text.strip():
            if options.column_names:
                return cls(path, options, list(options.column_names), dict.fromkeys(options.column_names, pa.string()))
            raise FileError(f"'{path}' is empty: a CSV file has at least a line with the names of its columns")
        try:
            table = pa.csv.read_csv(
                BytesIO(text),
                read_options=_read_options(options),
                parse_options=parse_options(path, options),
                convert_options=convert_options(options),
            )
        except pa.ArrowInvalid as error:
            raise FileError(f"'{path}' cannot be read as CSV: {_first_line(error)}") from None
        names = _names(path, options, table.schema.names)
        table = table.rename_columns(names)
        columns = cls(path, options, names, {name: _settled(table[name]) for name in names})
        columns._give_types()
        return columns

    @property
    def looks_headless(self) -> bool:
        """Whether the names look like values: then the file has no header, probably."""
        return self._options.header and any(_is_number(name) for name in self.schema.names)

    def parse(self, text: bytes) -> pa.RecordBatch:
        """The rows of some lines, without a header."""
        read = pa.csv.ReadOptions(column_names=self.schema.names, block_size=max(len(text), 1) + 1, use_threads=False)
        table = pa.csv.read_csv(
            BytesIO(text),
            read_options=read,
            parse_options=parse_options(self._path, self._options),
            convert_options=convert_options(self._options, self.schema),
        )
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=self.schema)

    def _widen(self, sample: bytes) -> None:
        """Take a sample from elsewhere into account; one that cannot be read begins inside of quotes."""
        read = pa.csv.ReadOptions(column_names=self.schema.names)
        try:
            table = pa.csv.read_csv(
                BytesIO(sample),
                read_options=read,
                parse_options=parse_options(self._path, self._options),
                convert_options=convert_options(self._options),
            )
        except pa.ArrowInvalid:
            return
        self.schema = pa.schema(
            [(field.name, _common(field.type, _settled(table[field.name]))) for field in self.schema]
        )
        self._give_types()

    def _give_types(self) -> None:
        self.schema = with_types(self.schema, self._options)


def headless(path: str, names: list[str]) -> str:
    """What to do about a file whose first line looks like a row."""
    shown = next(filter(_is_number, names), names[0])
    return (
        f"'{path}' seems to have no header (its first line holds {shown}): give --no-header and call its columns c0, "
        f"c1, .. c{len(names) - 1}, or name them with --columns"
    )


def with_types(schema: pa.Schema, options: ReadOptions, *, is_text: bool = True) -> pa.Schema:
    """The schema with the types that the user gives, and in text files strings where nothing but nulls was seen."""
    fields = []
    for field in schema:
        given = options.types.get(field.name)
        kind = pa.string() if is_text and pa.types.is_null(field.type) else field.type
        fields.append((field.name, kind if given is None else type_called(given)))
    return pa.schema(fields)


def type_called(name: str) -> pa.DataType:
    """The Arrow type of that name."""
    try:
        return pa.type_for_alias({"timestamp": "timestamp[us]", "float": "double", "int": "int64"}.get(name, name))
    except ValueError:
        raise FileError(f"'{name}' is not a type: write int64, double, string, bool, date32 or timestamp[us]") from None


def parse_options(path: str, options: ReadOptions) -> pa.csv.ParseOptions:
    """How the lines of a file are cut."""
    tabs = path.lower().endswith((".tsv", ".tsv.gz"))
    return pa.csv.ParseOptions(delimiter=options.delimiter or ("\t" if tabs else ","), newlines_in_values=True)


def convert_options(options: ReadOptions, schema: pa.Schema | None = None) -> pa.csv.ConvertOptions:
    """How text becomes values."""
    parsers: list[Any] = [pa.csv.ISO8601]
    if options.time_format is not None:
        parsers.insert(0, options.time_format)
    return pa.csv.ConvertOptions(column_types=schema, timestamp_parsers=parsers)


def _read_options(options: ReadOptions) -> pa.csv.ReadOptions:
    if options.column_names:
        return pa.csv.ReadOptions(column_names=options.column_names)
    return pa.csv.ReadOptions(autogenerate_column_names=not options.header)


def _names(path: str, options: ReadOptions, found: list[str]) -> list[str]:
    if options.column_names:
        return list(options.column_names)
    if not options.header:
        return [f"c{number}" for number in range(len(found))]
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None and any(map(_is_number, found)):
        raise FileError(headless(path, found))
    if twice is not None:
        raise FileError(f"'{path}' has two columns called '{twice}': a query could not tell them apart")
    return found


def _settled(column: pa.ChunkedArray) -> pa.DataType:
    """The type of a column as inferred, with times in microseconds where that is exact."""
    kind = column.type
    if not pa.types.is_timestamp(kind) or kind.unit == "us":
        return kind
    wanted = pa.timestamp("us", kind.tz)
    try:
        column.cast(wanted)
    except pa.ArrowInvalid:
        return kind
    return wanted


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A type whose text fits both."""
    if one.equals(other) or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    pair = {str(one), str(other)}
    if pair == {"int64", "double"}:
        return pa.float64()
    for exact in (one, other):
        if pa.types.is_timestamp(exact) and pair <= {"date32[day]", "timestamp[us]", "timestamp[ns]"}:
            return pa.timestamp("ns") if "timestamp[ns]" in pair else exact
    return pa.string()


def _samples(file: IO[bytes]) -> Iterator[bytes]:
    """Whole lines from places all over the file, the end included."""
    size = file.seek(0, 2)
    for number in range(1, SAMPLES + 1):
        file.seek(max(FIRST_BYTES, (size - SAMPLE_BYTES) * number // SAMPLES))
        text = file.read(SAMPLE_BYTES)
        start = text.find(b"\n") + 1
        yield _whole_lines(text[start:])


def _whole_lines(text: bytes) -> bytes:
    end = text.rfind(b"\n") + 1
    return text[:end] if end else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
