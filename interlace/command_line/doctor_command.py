"""`interlace version` and `interlace doctor`: what is installed, and what is missing."""

from __future__ import annotations

import click

from interlace.command_line.outcome import Exit, say_json

MARKS = {"ok": ("✓", "green"), "missing": ("!", "yellow"), "broken": ("✗", "red")}
json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON.")


@click.command("version")
@json_option
def version_command(as_json: bool) -> None:
    """Show the version."""
    from interlace import __version__

    if as_json:
        say_json({"version": __version__})
    else:
        click.echo(f"interlace {__version__}")


@click.command("doctor")
@json_option
def doctor(as_json: bool) -> None:
    """Check this machine: what is missing, and how to get it.

    Ends with code 1 only if something is broken that every join needs.
    """
    from dataclasses import asdict

    from interlace.command_line.checkup import CHECKS
    from interlace.command_line.cluster_checkup import CLUSTER_CHECKS

    found = []
    for check in (*CHECKS, *CLUSTER_CHECKS):
        result = check()
        found.append(result)
        if not as_json:
            mark, colour = MARKS[result.state]
            click.echo(f"{click.style(mark, fg=colour)} {click.style(f'{result.name:<9}', bold=True)} {result.text}")
            if result.remedy:
                click.echo(f"            {click.style('→', dim=True)} {result.remedy}")
    if as_json:
        say_json([asdict(result) for result in found])
    if any(result.state == "broken" for result in found):
        raise click.exceptions.Exit(Exit.FAILED)
