"""Runs shell commands as on a terminal, and returns what somebody would see."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
WIDTH = 120


class Terminal:
    """A folder in which commands run, with this checkout's `interlace` on the path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        programs = folder / ".programs"
        programs.mkdir()
        program = programs / "interlace"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m interlace "$@"\n')
        program.chmod(0o700)
        self._environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "TERM": "dumb",  # no progress bars, which come and go
        }

    def run(self, commands: str) -> str:
        """Run commands; return what the terminal shows, without colours, and with all times as 0.3 s."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, WIDTH, 0, 0))
        shell = subprocess.Popen(
            ["bash", "-eu", "-c", commands], cwd=self._folder, env=self._environment, stdin=theirs, stdout=theirs,
            stderr=theirs,
        )  # fmt: skip
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 1 << 16):
                shown += piece
        except OSError:
            pass  # how a terminal says that all programs have ended
        finally:
            os.close(ours)
            shell.wait()
        text = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", shown.decode()).replace("\r\n", "\n")
        return re.sub(r"\(\d+\.\d s\)", "(0.3 s)", text)
