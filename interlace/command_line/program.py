"""The program `interlace`: its commands, and how it ends."""

from __future__ import annotations

import click

from interlace.command_line.cluster_commands import COMMANDS
from interlace.command_line.doctor_command import doctor, version_command
from interlace.command_line.operating_commands import OPERATING_COMMANDS
from interlace.command_line.run_command import run
from interlace.command_line.sql_command import sql


class InOrder(click.Group):
    """A group that lists its commands in the order in which people meet them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=InOrder, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def program() -> None:
    """Join streams and files on inequalities and bands, exactly and fast.

    Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 unreachable, 130 interrupted.
    """


for command in (sql, run, *COMMANDS[:-1], *OPERATING_COMMANDS, COMMANDS[-1], doctor, version_command):
    program.add_command(command)
