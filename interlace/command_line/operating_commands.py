"""Commands for whoever looks after topologies on a cluster: logs, errors, deactivate, savepoint, rebalance, ui."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from interlace.command_line.cluster_commands import address_option, json_option, name_argument
from interlace.command_line.named_values import bindings
from interlace.command_line.outcome import failures, kept_signals, mistake, on_cluster, say_json, wait_for_signal

if TYPE_CHECKING:
    from interlace.watching.watch import Consumer
    from topology import Event, LogLine

FOLLOW_SECONDS = 1.0
LAST_LOOKS = 2
"""The processes of a topology that has failed hand in their last lines a moment later."""

TOKEN_VARIABLE = "INTERLACE_UI_TOKEN"


@click.command("logs", short_help="Show what a topology has logged and printed.")
@name_argument
@click.option("--component", metavar="NAME", help="Only lines of this component.")
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines, until the topology ends or fails, or Ctrl-C.")
@address_option
@json_option
def logs(name: str, component: str | None, follow: bool, address: str | None, as_json: bool) -> None:
    """Show what the processes of a topology have logged, and what its code has printed.

    Each line names the task that it comes from. The last 2,000 lines are kept, also of a topology that has failed.
    """
    with failures(), on_cluster(address):
        from topology import UnknownTopologyError, topology_logs

        lines = topology_logs(name, address=address)
        show_lines(lines, component, as_json=as_json)
        looks_left = LAST_LOOKS if follow else 0
        while looks_left:
            last = lines[-1].number if lines else -1
            try:
                failed = has_failed(name, address)  # asked first: its last lines come after its end
                fresh = topology_logs(name, last, address=address)
            except UnknownTopologyError:  # it has been stopped
                return
            show_lines(fresh, component, as_json=as_json)
            lines = fresh or lines
            looks_left = looks_left - 1 if failed and not fresh else LAST_LOOKS
            if looks_left:
                time.sleep(FOLLOW_SECONDS)


def has_failed(name: str, address: str | None) -> bool:
    """Whether a topology has ended by a failure: then it logs no more."""
    from topology import State, topology_status

    return topology_status(name, address=address).state is State.FAILED


def show_lines(lines: Sequence[LogLine], component: str | None, *, as_json: bool) -> None:
    """Print lines of the log."""
    from interlace.watching.report import line_as_json

    colours = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}
    for line in lines:
        if component in (None, line.component):
            if as_json:
                say_json(line_as_json(line))
            else:
                click.echo(click.style(str(line), fg=colours.get(line.level)))


@click.command("errors", short_help="Show why a topology failed or recovered.")
@name_argument
@address_option
@json_option
def errors(name: str, address: str | None, as_json: bool) -> None:
    """Show the failures of a topology, those that it has recovered from too, with the traceback of the user's code."""
    with failures(), on_cluster(address):
        from topology import topology_status

        found = [event for event in topology_status(name, address=address).events if event.text]
    if as_json:
        say_json([event_as_json(event) for event in found])
    elif not found:
        click.echo(f"'{name}' has had no failures", err=True)
    for event in [] if as_json else found:
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at))
        place = f" in {event.task[0]}[{event.task[1]}]" if event.task else ""
        click.echo(click.style(f"{moment} {event.state.value}{place}", bold=True))
        click.echo(event.text.rstrip())


def event_as_json(event: Event) -> dict[str, Any]:
    """A failure for programs."""
    task = None if event.task is None else f"{event.task[0]}/{event.task[1]}"
    return {"at": event.at, "state": event.state.value, "task": task, "text": event.text}


@click.command("deactivate", short_help="Let a topology take no more rows, for a while.")
@click.argument("name")
@address_option
@json_option
def deactivate(name: str, address: str | None, as_json: bool) -> None:
    """Let a topology take no more rows, from any program or spout, until `interlace activate`.

    Whoever sends rows waits. What has been taken goes on to its results, and windows stay.
    """
    _set_active(name, address, active=False, as_json=as_json)


@click.command("activate", short_help="Let a topology take rows again.")
@click.argument("name")
@address_option
@json_option
def activate(name: str, address: str | None, as_json: bool) -> None:
    """Let a topology take rows again, after `interlace deactivate`. Whoever waited to send goes on."""
    _set_active(name, address, active=True, as_json=as_json)


def _set_active(name: str, address: str | None, *, active: bool, as_json: bool) -> None:
    with failures():
        from topology import attach

        with attach(name, address=address) as running:
            if active:
                running.activate()
            else:
                running.deactivate()
    if as_json:
        say_json({"name": name, "active": active})
    else:
        click.echo(f"'{name}' takes rows" if active else f"'{name}' takes no rows until it is activated")


@click.command("savepoint", short_help="Copy the state of a topology.")
@name_argument
@address_option
@json_option
def savepoint(name: str, address: str | None, as_json: bool) -> None:
    """Copy everything that a topology needs to go on from here, and print where the copy is.

    The topology goes on. `interlace deploy --savepoint` begins another one from the copy.
    """
    with failures(), on_cluster(address):
        from topology import attach

        with attach(name, address=address) as running:
            saved = running.savepoint()
    if as_json:
        say_json({"name": name, "savepoint": saved})
    else:
        click.echo(saved)


@click.command("rebalance", short_help="Change the number of tasks of components.")
@name_argument
@click.argument("counts", nargs=-1, required=True, metavar="COMPONENT=N...")
@address_option
@json_option
def rebalance(name: str, counts: tuple[str, ...], address: str | None, as_json: bool) -> None:
    """Change the number of tasks of components, while the topology runs: `interlace rebalance trips po-join=4`.

    It goes on from its state, so it must have been launched with one. Results and their order stay the same.
    """
    wanted = bindings(counts)
    for component, count in wanted.items():
        if not count.isdecimal() or not int(count):
            raise mistake(f"{component}={count}: the number of tasks is a whole number from 1 on")
    with failures(), on_cluster(address):
        from topology import attach

        with attach(name, address=address) as running:
            running.rebalance(**{key.replace("-", "_"): int(count) for key, count in wanted.items()})
    if as_json:
        say_json({"name": name, "tasks": {key: int(count) for key, count in wanted.items()}})
    else:
        click.echo(f"'{name}' goes on with {', '.join(f'{key}={count}' for key, count in wanted.items())}")


@click.command("ui", short_help="Serve the live page of a cluster's topologies.")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Where to listen; beyond loopback with TLS.")
@click.option("--port", type=click.IntRange(0, 65535), default=8266, metavar="N", help="0 takes a free one.")
@click.option("--certificate", metavar="FILE", help="A certificate of your own, as PEM; with --key.")
@click.option("--key", metavar="FILE", help="Its private key.")
@click.option("--open", "opens", is_flag=True, help="Open a browser.")
@click.option("--ray-metrics", is_flag=True, help="Also hand all numbers to Ray, beside Ray's own metrics.")
@address_option
@json_option
def ui(
    host: str,
    port: int,
    certificate: str | None,
    key: str | None,
    opens: bool,
    ray_metrics: bool,
    address: str | None,
    as_json: bool,
) -> None:
    """Serve the live page, the REST API and the metrics of all topologies of a cluster, until Ctrl-C.

    Open the address that is printed: it holds a token. Prometheus reads /metrics with the same token. The variable
    INTERLACE_UI_TOKEN sets one that stays the same. Nothing happens to the topologies when the page ends.
    """
    if (certificate is None) != (key is None):
        raise mistake("--certificate and --key belong together")
    with failures():
        from interlace.web.desk import ClusterDesk
        from interlace.web.server import WebServer
        from topology import Tls

        tls = None if certificate is None or key is None else Tls(certificate, key)
        consumers: tuple[Consumer, ...] = ()
        if ray_metrics:
            from interlace.on_ray.ray_metrics import RayMetrics

            consumers = (RayMetrics(),)
        token = os.environ.get(TOKEN_VARIABLE) or None
        with kept_signals():
            desk = ClusterDesk(address, consumers=consumers, watches_all=ray_metrics)
        try:
            server = WebServer(desk, host=host, port=port, token=token, tls=tls)
        except BaseException:
            desk.close()
            raise
        with server:
            if as_json:
                say_json({"url": server.url, "token": str(server.token)})
            else:
                click.echo(f"the page is at {server.url_with_token}")
                click.echo("Ctrl-C ends it; topologies go on", err=True)
            if opens:
                click.launch(server.url_with_token)
            wait_for_signal(lambda: not server.is_serving)


OPERATING_COMMANDS = (logs, errors, deactivate, activate, savepoint, rebalance, ui)
