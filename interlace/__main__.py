"""`interlace` and `python -m interlace`: the command line, and how it ends."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from types import FrameType
from typing import NoReturn

SIGNALLED = 128
"""A program that a signal has ended has this code and the number of the signal."""


class _Ended(BaseException):
    """The program was asked to end: by Ctrl-C, or by a signal."""

    def __init__(self, number: int) -> None:
        self.number = number


def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # asking twice does not disturb the cleaning up
    raise _Ended(number)


def main() -> None:
    """Run the command line and end the process.

    A process that is asked to end leaves at once when it has cleaned up: a thread may still wait for standard input.
    Any other leaves after its exit handlers, without taking the interpreter and the C++ libraries apart: C++ would
    abort if one of Arrow's threads were just starting.
    """
    status = [1]  # of an error that nobody caught
    atexit.register(lambda: _leave(status[0]))  # registered first, so it comes last
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _end)
        code = _run()
    except _Ended as ended:
        _leave(SIGNALLED + ended.number)
    if any(thread.name == "feeding" for thread in threading.enumerate()):
        _leave(code)  # it waits for standard input
    status[0] = code
    sys.exit(code)


def _run() -> int:
    import click

    from interlace.command_line.program import program

    try:
        return int(program.main(prog_name="interlace", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return SIGNALLED + signal.SIGINT


def _leave(code: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            pass
    os._exit(code)


if __name__ == "__main__":
    main()
