"""Runs the command line in this process, and in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from interlace.command_line.program import program

ROOT = Path(__file__).parents[3]
PROGRAM = [sys.executable, "-m", "interlace"]


def invoke(*arguments: str, input: bytes | None = None) -> Result:
    """Run a command; an error that is no message of the program's is raised here."""
    result = CliRunner().invoke(program, list(arguments), input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def start(*arguments: str, **options: object) -> subprocess.Popen[bytes]:
    """Start the program in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([*PROGRAM, *arguments], env=environment, **options)  # type: ignore[call-overload]
