"""`interlace sql`: joins files with a query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from interlace.command_line.file_options import open_tables, read_options, reading_options, writing_options
from interlace.command_line.named_values import bindings, by_stream
from interlace.command_line.outcome import failures, mistake, say_json

if TYPE_CHECKING:
    from interlace.files.query_text import QueryText
    from interlace.files.tables import Table
    from interlace.foreground.inputs import InputRows
    from interlace.foreground.notes import Notes
    from operators import Explanation, MultiJoin, StreamJoin

    Join = StreamJoin | MultiJoin

_CAST = re.compile(r'cast \S+: table\["([^"]+)"\]\.cast\("([^"]+)"\)')
"""What a message about types tells programs to do."""

STEP_ROWS = 1 << 12
"""A step's results come out together, so small steps show the first results early."""


@click.command("sql", short_help="Join files with a query.")
@click.argument("query")
@click.option(
    "-t",
    "--event-time",
    "event_time",
    multiple=True,
    metavar="COLUMN",
    help="The column that orders the rows; by default the only column of times, or the order of the file. "
    " [also NAME=COLUMN]",
)
@click.option(
    "--out-of-order",
    metavar="LENGTH",
    multiple=True,
    help="How far rows may be out of order, such as 5min; files are then not sorted.  [also NAME=LENGTH]",
)
@click.option(
    "--sorted", "is_sorted", is_flag=True, help="The files are sorted by event time: do not check that first."
)
@click.option("-i", "--input", "inputs", multiple=True, metavar="NAME=FILE", help="The file of a name in FROM.")
@click.option("--explain", is_flag=True, help="Show what would run, and why, without running it.")
@reading_options
@writing_options
def sql(query: str, **options: Any) -> None:
    """Join files with a QUERY, and show the results while the files are read.

    \b
    interlace sql "SELECT a.id, b.id
                   FROM 'trips.parquet' AS a, 'stops.csv' AS b
                   WHERE abs(a.x - b.x) <= 300 AND a.fare < b.fare
                   WINDOW AS (INTERVAL '5 min')" --event-time ts

    FROM takes two files or more (Parquet, CSV, JSON lines, Arrow), directories, globs, and '-' for standard input. The
    same file twice is joined with itself: a row never meets itself. NAME in an option is the name of a side, such as a.
    """  # noqa: D301
    with failures():
        run_query(query, **options)


def run_query(
    written: str,
    *,
    event_time: tuple[str, ...],
    out_of_order: tuple[str, ...],
    is_sorted: bool,
    inputs: tuple[str, ...],
    explain: bool,
    output: str | None,
    format_out: str | None,
    limit: int | None,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Run a query over files."""
    from interlace.files.query_text import read_query
    from interlace.foreground.notes import Notes
    from operators import QueryError
    from topology import OutOfOrderError, SchemaError

    notes = Notes(quiet=quiet)
    query = read_query(written, bindings(inputs))
    times = by_stream("--event-time", event_time, query.roles, str)
    bounds = by_stream("--out-of-order", out_of_order, query.roles, _length)
    try:
        join = _join(query, times, bounds)
    except QueryError as error:
        raise QueryError(query.as_written(str(error))) from None
    tables = open_tables(query.paths, read_options(query.roles, **reading))
    join = _with_times(join, tables, notes)
    rows = input_rows(join, tables, query.roles, is_sorted=is_sorted)
    if explain:
        explained = _explained(join, rows)
        if as_json:
            sections = [{"name": name, "lines": list(lines)} for name, lines in explained.sections]
            say_json({"title": explained.title, "sections": sections})
        else:
            click.echo(str(explained))
        return
    try:
        run_join(join, rows, notes, output, format_out, limit, as_json=as_json)
    except SchemaError as error:
        raise SchemaError(_CAST.sub(r"give --type \1=\2", str(error))) from None
    except OutOfOrderError as error:
        problem = str(error).partition(": sort each source")[0]
        raise OutOfOrderError(f"{problem}: sort it, or give --out-of-order with how far rows may go back") from None


def run_join(
    join: Join,
    rows: list[InputRows],
    notes: Notes,
    output: str | None,
    format_out: str | None,
    limit: int | None,
    *,
    as_json: bool,
) -> None:
    """Run a join over files in this process."""
    import warnings

    from interlace.foreground.execution import execute
    from interlace.foreground.output import output_to
    from operators import UnboundedStateWarning
    from topology import LocalRuntime

    def launch() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnboundedStateWarning)  # files have an end
            return join.launch(LocalRuntime(), sources={each.stream: [each.stream] for each in rows})

    execute(launch, rows, output_to(output, format_out, limit, notes, as_json=as_json), notes)  # type: ignore[arg-type]


def input_rows(
    join: Join, tables: Mapping[str, Table], roles: Mapping[str, str], *, is_sorted: bool
) -> list[InputRows]:
    """What each stream of the join reads of its file."""
    from interlace.foreground.inputs import InputRows, read_schema, require_columns, with_common_times

    rows = []
    for stream, table in tables.items():
        needed = join.needed_columns(stream, table.schema)
        role = next((role for role, of in roles.items() if of == stream), stream)
        require_columns(role, table, needed)
        resolved = join.resolved
        rows.append(
            InputRows(
                stream,
                table,
                read_schema(table, needed),
                resolved.event_times[stream],
                stream in resolved.bounds,
                is_sorted,
            )
        )
    return with_common_times(rows)


def _join(query: QueryText, times: Mapping[str, str], bounds: Mapping[str, Any]) -> Join:
    from operators import MultiJoin, NoWindowError, StreamJoin, UnboundedWindow

    settings: dict[str, Any] = {
        "event_time": dict(times) or None,
        "out_of_order": dict(bounds) or None,
        "step_rows": STEP_ROWS,
    }
    several = len(query.roles) > 2
    try:
        return MultiJoin.from_sql(query.text, **settings) if several else StreamJoin.from_sql(query.text, **settings)
    except NoWindowError:
        # Rows that wait for ever are no harm where the input ends.
        if several:
            return MultiJoin.from_sql(query.text, windows=UnboundedWindow(), **settings)
        return StreamJoin.from_sql(query.text, window=UnboundedWindow(), **settings)


def _explained(join: Join, rows: list[InputRows]) -> Explanation:
    from operators import StreamJoin

    if isinstance(join, StreamJoin):
        return join.explain({each.stream: each.columns for each in rows})
    return join.explain()


def _with_times(join: Join, tables: Mapping[str, Table], notes: Notes) -> Join:
    """The join with an event time, where its windows need one and each file has only one column of times."""
    from interlace.foreground.inputs import time_columns
    from operators import TimeWindow

    lengths = [window.size for window in join.resolved.windows if isinstance(window, TimeWindow)]
    if join.event_time is not None or not any(isinstance(length, timedelta) for length in lengths):
        return join
    found = time_columns({stream: table.schema for stream, table in tables.items()})
    if all(len(columns) == 1 for columns in found.values()):
        chosen = {stream: columns[0] for stream, columns in found.items()}
        notes.say("event time: " + ", ".join(f"{column} of {stream}" for stream, column in chosen.items()))
        return replace(join, event_time=chosen)
    options = []
    for stream, columns in found.items():
        if len(columns) != 1:
            shown = " or ".join(columns) if columns else "none of its columns holds times; see --time-format"
            options.append(f"'{tables[stream].path}': {shown}")
    raise mistake(
        "a window of time needs the column that orders the rows: give --event-time COLUMN\n  " + "\n  ".join(options)
    )


def _length(text: str) -> Any:
    """A length of time, or a number in the unit of the event time."""
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
