"""The options that say how files are read and where results go, shared by the commands that do so."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from interlace.command_line.named_values import by_stream
from interlace.command_line.outcome import mistake

if TYPE_CHECKING:
    from interlace.files.read_options import ReadOptions
    from interlace.files.tables import Table

Command = TypeVar("Command", bound=Callable[..., Any])
FORMATS = ["parquet", "csv", "jsonl", "arrow"]

_READING = (
    click.option("--format", "formats", multiple=True, metavar="FORMAT",
                 help="parquet, csv, jsonl or arrow; by default as the name says.  [also NAME=FORMAT]"),
    click.option("--no-header", is_flag=True, help="CSV files begin with a row; columns are called c0, c1, ..."),
    click.option("--columns", "columns", multiple=True, metavar="A,B,..",
                 help="Names for the columns of CSV files without a header.  [also NAME=A,B,..]"),
    click.option("--type", "types", multiple=True, metavar="COLUMN=TYPE",
                 help="The type of a column: int64, double, string, timestamp[us], ..."),
    click.option("--time-format", metavar="PATTERN", help="How times are written in CSV, such as '%d.%m.%Y %H:%M'."),
    click.option("--delimiter", metavar="CHAR", help="Between the columns of CSV files; by default a comma."),
)  # fmt: skip
_WRITING = (
    click.option("-o", "--output", metavar="FILE",
                 help="Write the results to a file: .parquet, .csv, .jsonl or .arrow."),
    click.option("--format-out", type=click.Choice(FORMATS), help="The format of the results."),
    click.option("--limit", type=click.IntRange(min=1), metavar="N", help="End after N results."),
    click.option("--json", "as_json", is_flag=True, help="Write JSON lines."),
    click.option("-q", "--quiet", is_flag=True, help="No notes and no progress on standard error."),
)  # fmt: skip


def reading_options(command: Command) -> Command:
    """Add the options about input files."""
    for option in reversed(_READING):
        command = option(command)
    return command


def writing_options(command: Command) -> Command:
    """Add the options about results."""
    for option in reversed(_WRITING):
        command = option(command)
    return command


def read_options(
    roles: Mapping[str, str],
    *,
    formats: tuple[str, ...],
    no_header: bool,
    columns: tuple[str, ...],
    types: tuple[str, ...],
    time_format: str | None,
    delimiter: str | None,
) -> dict[str, ReadOptions]:
    """The settings of each stream; `roles` gives the stream of each name that an option may use."""
    from interlace.files.read_options import ReadOptions

    given = by_stream("--format", formats, roles, str)
    wrong = next((each for each in given.values() if each not in FORMATS), None)
    if wrong is not None:
        raise mistake(f"--format {wrong}: write one of {', '.join(FORMATS)}")
    names = by_stream("--columns", columns, roles, lambda text: tuple(name.strip() for name in text.split(",")))
    wished: dict[str, str] = {}
    for text in types:
        column, equals, kind = text.rpartition("=")
        if not equals:
            raise mistake(f"--type {text}: write COLUMN=TYPE, such as --type fare=double")
        wished[column] = kind
    return {
        stream: ReadOptions(
            given.get(stream),  # type: ignore[arg-type]
            not no_header,
            names.get(stream, ()),
            wished,
            time_format,
            delimiter,
        )
        for stream in roles.values()
    }


def open_tables(paths: Mapping[str, str], options: Mapping[str, ReadOptions]) -> dict[str, Table]:
    """The table of each stream."""
    from interlace.files.errors import MissingFileError
    from interlace.files.standard_input import NAMES, StandardInput
    from interlace.files.tables import FileTable

    piped = [stream for stream, path in paths.items() if path in NAMES]
    if len(piped) > 1:
        raise mistake(f"standard input can feed one stream only, not {' and '.join(piped)}")
    if piped and sys.stdin.buffer.isatty():
        raise mistake(f"'{paths[piped[0]]}' is standard input, and nothing is piped into it")
    tables: dict[str, Table] = {}
    for stream, path in paths.items():
        try:
            is_piped = path in NAMES
            tables[stream] = (
                StandardInput(path, sys.stdin.buffer, options[stream]) if is_piped else FileTable(path, options[stream])
            )
        except MissingFileError as error:
            if not path.isidentifier():
                raise
            raise MissingFileError(f"{error}\nif it is a name for another file, give --input {path}=FILE") from None
    return tables
