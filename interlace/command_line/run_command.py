"""`interlace run`: runs a join or a topology in the foreground, over files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from interlace.command_line.file_options import open_tables, read_options, reading_options, writing_options
from interlace.command_line.named_values import bindings
from interlace.command_line.outcome import failures, mistake, say_json
from interlace.files.errors import did_you_mean

if TYPE_CHECKING:
    from interlace.command_line.targets import Target
    from interlace.files.tables import Table
    from interlace.foreground.inputs import InputRows
    from topology import Topology


@click.command("run", short_help="Run a join or a topology here, over files.")
@click.argument("target", metavar="FILE.py:NAME|FILE.yaml")
@click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=FILE",
    help="The file, directory or glob whose rows an input gets; '-' is standard input.",
)
@click.option("--sink", metavar="NAME", help="The sink to read, where there are several.")
@click.option(
    "--sorted", "is_sorted", is_flag=True, help="The files are sorted by event time: do not check that first."
)
@click.option("--dry-run", is_flag=True, help="Show the plan, and run nothing.")
@reading_options
@writing_options
def run(target: str, **options: Any) -> None:
    """Run a join or a topology in this process, until its inputs have ended.

    NAME is a StreamJoin, a Topology, or a function that returns one; it may be left out if the file has only one.
    Ctrl-C ends the run, and leaves nothing behind; the exit code is then 130.
    """
    with failures():
        run_target(target, **options)


def run_target(
    text: str,
    *,
    inputs: tuple[str, ...],
    sink: str | None,
    is_sorted: bool,
    dry_run: bool,
    output: str | None,
    format_out: Any,
    limit: int | None,
    as_json: bool,
    quiet: bool,
    **reading: Any,
) -> None:
    """Find what to run, bind its inputs and run it."""
    from interlace.command_line.targets import find_target
    from interlace.foreground.notes import Notes

    notes = Notes(quiet=quiet)
    target = find_target(text)
    topology = target.topology
    paths = _paths(topology, {**target.paths, **bindings(inputs)})
    if dry_run:
        show_plan(topology, paths, as_json=as_json)
        return
    unbound = next((name for name in topology.inputs if name not in paths), None)
    if unbound is not None:
        raise mistake(f"the input '{unbound}' has no rows: give --input {unbound}=FILE")
    tables = open_tables(paths, read_options({name: name for name in paths}, **reading))
    if target.join is not None:
        from interlace.command_line.sql_command import input_rows, run_join

        rows = input_rows(target.join, tables, {}, is_sorted=is_sorted)
        run_join(target.join, rows, notes, output, format_out, limit, as_json=as_json)
        return
    from interlace.foreground.execution import execute
    from interlace.foreground.output import output_to
    from topology import LocalRuntime

    _check_sink(topology, sink)
    results = output_to(output, format_out, limit, notes, as_json=as_json)
    rows = _topology_rows(target, tables, is_sorted)
    execute(lambda: target.launch(LocalRuntime()), rows, results, notes, sink)


def show_plan(topology: Topology, paths: Mapping[str, str], *, as_json: bool) -> None:
    """Show what would run."""
    plan = topology.plan()
    if as_json:
        say_json({**plan_as_json(topology), "files": dict(paths)})
        return
    click.echo(str(plan))
    for name, path in paths.items():
        click.echo(f"  {name} reads {path}")


def plan_as_json(topology: Topology) -> dict[str, Any]:
    """The components of a topology and what they subscribe to."""
    return {
        "name": topology.name,
        "components": [
            {
                "name": node.name,
                "kind": node.component.kind,
                "class": type(node.component).__name__,
                "parallelism": node.parallelism,
                "note": node.component.note,
            }
            for node in topology.nodes
        ],
        "streams": [
            {
                "from": edge.producer,
                "stream": edge.stream,
                "to": edge.consumer,
                "grouping": type(edge.grouping).__name__.lower(),
                "fields": list(edge.grouping.fields),
            }
            for edge in topology.edges
        ],
    }


def _paths(topology: Topology, given: Mapping[str, str]) -> dict[str, str]:
    unknown = next((name for name in given if name not in topology.inputs), None)
    if unknown is not None:
        known = ", ".join(topology.inputs) or "none"
        raise mistake(f"there is no input '{unknown}'{did_you_mean(unknown, topology.inputs)}; inputs: {known}")
    return {name: given[name] for name in topology.inputs if name in given}


def _check_sink(topology: Topology, sink: str | None) -> None:
    if sink is None and topology.main_sink is None:
        raise mistake(f"name the sink to read with --sink, one of: {', '.join(topology.sinks) or 'none'}")
    if sink is not None and sink not in topology.sinks:
        known = ", ".join(topology.sinks)
        raise mistake(f"there is no sink '{sink}'{did_you_mean(sink, topology.sinks)}; sinks: {known}")


def _topology_rows(target: Target, tables: Mapping[str, Table], is_sorted: bool) -> list[InputRows]:
    from interlace.foreground.inputs import InputRows, require_columns

    rows = []
    for name, table in tables.items():
        schema = target.topology.inputs[name].schema
        event_time, disordered = target.event_times[name]
        needed = [] if schema is None else schema.names
        require_columns(name, table, [*needed, *([event_time] if event_time else [])])
        rows.append(InputRows(name, table, schema or table.schema, event_time, disordered, is_sorted))
    return rows
