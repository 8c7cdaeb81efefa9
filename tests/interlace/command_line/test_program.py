"""What all commands share: JSON for scripts, completion in the shell, and names shown as they are."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete
from rich.console import Console

import interlace as il
import topology
from interlace.command_line.metrics_view import _Look, _table
from interlace.command_line.program import program
from topology import ClusterError, Metrics, Status, TaskMetrics


@pytest.mark.parametrize("name", program.commands)
def test_every_command_writes_json_and_explains_itself(name: str) -> None:
    command = program.commands[name]
    options = {spelling for parameter in command.params for spelling in parameter.opts}
    assert "--json" in options
    assert command.help
    assert command.get_short_help_str()


def completed(*words: str) -> list[str]:
    *before, incomplete = words
    found = ShellComplete(program, {}, "interlace", "_INTERLACE_COMPLETE").get_completions(before, incomplete)
    return [item.value for item in found]


def test_commands_options_and_names_of_topologies_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []

    def listed(address: str | None = None) -> tuple[Status, ...]:
        asked.append(address)
        return tuple(Status(name, il.State.RUNNING, ()) for name in ("offers", "orders", "trips"))

    monkeypatch.setattr(topology, "topologies", listed)
    monkeypatch.setattr("interlace.command_line.cluster_commands.on_cluster", lambda address: click.Context(program))
    assert completed("st") == ["status"]
    assert "--wait" in completed("kill", "--w")
    for command in ("status", "describe", "metrics", "top", "logs", "errors", "savepoint", "rebalance", "kill"):
        assert completed(command, "o") == ["offers", "orders"], command
    assert completed("status", "--address", "10.0.0.1:6379", "t") == ["trips"]
    assert asked[-1] == "10.0.0.1:6379"


def test_completion_is_silent_where_no_cluster_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(address: str | None = None) -> Any:
        raise ClusterError("no Ray cluster answers")

    monkeypatch.setattr(topology, "topologies", refused)
    monkeypatch.setattr("interlace.command_line.cluster_commands.on_cluster", lambda address: click.Context(program))
    assert completed("status", "o") == []


class Counted:
    """A handle whose counters a test sets."""

    name = "[bold]odd"

    def __init__(self) -> None:
        self.rows, self.busy = 0, 0.0

    def metrics(self) -> Metrics:
        return Metrics((TaskMetrics("[red]work", 0, self.rows, self.rows, 0, 0, 0, 0, self.busy, 0, {}),))


def test_counters_that_began_anew_give_no_negative_rates_and_names_are_no_markup() -> None:
    running: Any = Counted()
    look = _Look(running, False)
    running.rows, running.busy = 1000, 5.0
    look.next()
    running.rows, running.busy = 10, 0.0  # after a recovery or a rebalance
    (load,) = look.next()["components"]
    assert (load["rows_in_per_second"], load["rows_out_per_second"], load["busy"]) == (0.0, 0.0, 0.0)
    running.rows = 30
    rates = look.next()
    assert rates["components"][0]["rows_in_per_second"] > 0
    console = Console(width=120)
    with console.capture() as shown:
        console.print(_table(running.name, rates))
    assert "[bold]odd" in shown.get()
    assert "[red]work" in shown.get()
