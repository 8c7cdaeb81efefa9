"""Commands about topologies on a Ray cluster: deploy, list, status, describe, metrics, top, kill."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from interlace.command_line.columns_text import print_columns
from interlace.command_line.outcome import Exit, Failure, failures, mistake, on_cluster, say_json

if TYPE_CHECKING:
    from topology import Status

Command = TypeVar("Command", bound=Callable[..., Any])

COLOURS = {"running": "green", "starting": "yellow", "recovering": "yellow", "failed": "red", "stopped": "red"}
address_option = click.option(
    "--address", metavar="HOST:PORT", help="The cluster; by default that of RAY_ADDRESS, or the one on this machine."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON.")


def topology_names(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """The names of topologies that begin so, for the completion of the shell; none where no cluster answers."""
    from topology import InterlaceError, topologies

    try:
        with on_cluster(context.params.get("address")):
            found = topologies(address=context.params.get("address"))
    except InterlaceError:
        return []
    return [status.name for status in found if status.name.startswith(incomplete)]


name_argument = click.argument("name", shell_complete=topology_names)


@click.command("deploy", short_help="Start a join or a topology on a cluster.")
@click.argument("target", metavar="FILE.py:NAME|FILE.yaml")
@click.option("--name", required=True, help="The name under which others find it.")
@click.option("--replace", is_flag=True, help="Stop what runs under this name, and take its place.")
@click.option(
    "--placement",
    default="default",
    metavar="default|per-task|N",
    help="Which tasks share a worker; N: so many workers.",
)
@click.option(
    "--state",
    metavar="DIRECTORY|URI",
    help="Where everything is kept that must survive failures: s3://bucket/prefix, or a directory on a single node.",
)
@click.option("--savepoint", metavar="PLACE", help="Begin from this copy of a state; with --state, which is new.")
@address_option
@json_option
def deploy(
    target: str,
    name: str,
    replace: bool,
    placement: str,
    state: str | None,
    savepoint: str | None,
    address: str | None,
    as_json: bool,
) -> None:
    """Start a join or a topology on a cluster; it goes on until someone kills it.

    Rows come from programs that attach to it, from Spark, or from its own spouts.
    """
    with failures():
        from interlace.command_line.targets import find_target
        from topology import RayRuntime, Workers

        found = find_target(target)
        if placement not in ("default", "per-task") and not placement.isdecimal():
            raise mistake(f"--placement {placement}: write default, per-task or a number of workers")
        if found.paths:
            unread = ", ".join(found.paths.values())
            click.echo(f"note: a cluster does not read the files of the inputs ({unread}): send their rows", err=True)
        wish: Any = Workers(int(placement)) if placement.isdecimal() else placement
        runtime = RayRuntime(address=address or "auto", placement=wish, state=state, savepoint=savepoint)
        with on_cluster(address), found.launch(runtime, name=name, detached=True, replace=replace) as running:
            status = running.status()
        if as_json:
            from interlace.watching.report import status_as_json

            say_json(status_as_json(status))
        else:
            nodes = len({worker.node for worker in status.workers})
            click.echo(f"'{name}' runs: {_count(len(status.workers), 'worker')} on {_count(nodes, 'node')}")


@click.command("list")
@address_option
@json_option
def list_command(address: str | None, as_json: bool) -> None:
    """List the topologies of a cluster."""
    with failures(), on_cluster(address):
        from topology import topologies

        found = topologies(address=address)
    if as_json:
        from interlace.watching.report import status_as_json

        say_json([status_as_json(status) for status in found])
    elif found:
        rows = [
            (
                status.name,
                status.state.value,
                str(len(status.workers)),
                str(sum(len(worker.tasks) for worker in status.workers)),
                "yes" if status.detached else "no",
                status.error.strip().splitlines()[-1] if status.error else "",
            )
            for status in found
        ]
        print_columns(("name", "state", "workers", "tasks", "detached", "error"), rows, right=("workers", "tasks"))
    else:
        click.echo("no topology runs on this cluster", err=True)


@click.command("status")
@name_argument
@address_option
@json_option
def status_command(name: str, address: str | None, as_json: bool) -> None:
    """Show whether a topology runs, and in which processes.

    Ends with code 1 if the topology has failed.
    """
    with failures(), on_cluster(address):
        from topology import topology_status

        status = topology_status(name, address=address)
    if as_json:
        from interlace.watching.report import status_as_json

        say_json(status_as_json(status))
    else:
        kinds = (("deactivated", not status.active), ("detached", status.detached), ("encrypted", status.encrypted))
        notes = [note for note, holds in kinds if holds]
        state = click.style(status.state.value, fg=COLOURS[status.state.value])
        click.echo(f"{status.name}: {', '.join([state, *notes])}")
        print_workers(status)
        for text in filter(None, (status.error, status.trouble)):
            click.echo(text, err=True)
    if status.state.value == "failed":
        raise click.exceptions.Exit(Exit.FAILED)


@click.command("describe", short_help="Show components and workers.")
@name_argument
@address_option
@json_option
def describe(name: str, address: str | None, as_json: bool) -> None:
    """Show the components of a topology, and the workers that hold their tasks."""
    with failures(), on_cluster(address):
        from interlace.command_line.run_command import plan_as_json
        from topology import attach

        with attach(name, address=address) as running:
            topology, status = running.topology, running.status()
    if as_json:
        from interlace.watching.report import status_as_json

        say_json({**plan_as_json(topology), "status": status_as_json(status)})
        return
    click.echo(str(topology.plan()))
    click.echo()
    print_workers(status)


@click.command("metrics")
@name_argument
@click.option("--tasks", "by_task", is_flag=True, help="A line for each task, not for each component.")
@address_option
@json_option
def metrics_command(name: str, by_task: bool, address: str | None, as_json: bool) -> None:
    """Show what the tasks of a topology have counted."""
    with failures(), on_cluster(address):
        from interlace.command_line.metrics_view import metrics_as_json, print_metrics
        from topology import attach

        with attach(name, address=address) as running:
            metrics = running.metrics()
        if as_json:
            say_json(metrics_as_json(metrics))
        else:
            print_metrics(metrics, by_task=by_task)


@click.command("top", short_help="Watch what a topology does.")
@name_argument
@click.option("--interval", type=click.FloatRange(min=0.1), default=1.0, metavar="S", help="Seconds between two looks.")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="End after N looks.")
@click.option("--tasks", "by_task", is_flag=True, help="A line for each task, not for each component.")
@address_option
@json_option
def top(name: str, interval: float, count: int | None, by_task: bool, address: str | None, as_json: bool) -> None:
    """Watch what a topology does: rows a second, rows that wait, and how busy its tasks are.

    Ctrl-C ends it. With --json, each look is a line.
    """
    with failures(), on_cluster(address):
        from interlace.command_line.metrics_view import watch
        from topology import attach

        with attach(name, address=address) as running:
            watch(running, interval, count, by_task=by_task, as_json=as_json)


@click.command("kill")
@name_argument
@click.option(
    "--wait", "seconds", type=click.FloatRange(min=0), metavar="S",
    help="End the inputs first, and stop when all results have been read, but after S seconds at the latest.",
)  # fmt: skip
@address_option
@json_option
def kill(name: str, seconds: float | None, address: str | None, as_json: bool) -> None:
    """Stop a topology, for everyone who uses it.

    With --wait, the exit code is 1 if results were left unread.
    """
    with failures(), on_cluster(address):
        from interlace.watching.draining import wait_until_read
        from topology import attach, stop_topology

        drained = None
        if seconds is not None:
            with attach(name, address=address) as running:
                running.finish()
                drained = wait_until_read(running, seconds)
        stop_topology(name, address=address)
    if as_json:
        say_json({"name": name, "state": "stopped", **({} if drained is None else {"drained": drained})})
    else:
        click.echo(f"'{name}' has been stopped")
    if drained is False:
        text = f"results of '{name}' were left unread after {seconds:g} s"
        raise Failure(f"{text}; with --state, deploy it again and read on", Exit.FAILED)


COMMANDS = (deploy, list_command, status_command, describe, metrics_command, top, kill)


def print_workers(status: Status) -> None:
    """Print the workers of a topology, and what they hold."""
    rows = [
        (
            worker.name.removeprefix(f"{status.name}/"),
            worker.node,
            str(worker.pid),
            f"{worker.silent:.0f} s" if worker.silent >= 3 else "",
            ", ".join(f"{component}[{number}]" for component, number in worker.tasks),
        )
        for worker in status.workers
    ]
    if rows:
        print_columns(("worker", "node", "process", "silent", "tasks"), rows, right=("process", "silent"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
