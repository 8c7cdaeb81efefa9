"""The program `interlace`: its commands, and how it ends."""

from __future__ import annotations

import click

from interlace.command_line.doctor_command import doctor, version_command
from interlace.command_line.run_command import run
from interlace.command_line.sql_command import sql


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def program() -> None:
    """Join streams and files on inequalities and bands, exactly and fast."""


for command in (sql, run, version_command, doctor):
    program.add_command(command)
