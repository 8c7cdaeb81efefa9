"""Exit codes, and errors as messages: a mistake of the user's never shows a stack trace."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import IntEnum
from typing import IO, Any

import click

ENDING = (signal.SIGINT, signal.SIGTERM)
"""The signals that ask a program to end."""

LOOK_SECONDS = 0.5


class Exit(IntEnum):
    """How the program ends."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    UNREACHABLE = 4
    INTERRUPTED = 130


class Failure(click.ClickException):
    """Ends the program with a message and an exit code."""

    def __init__(self, message: str, code: Exit) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # click reads it from the instance

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the message to standard error."""
        click.echo(click.style("error: ", fg="red", bold=True) + self.message, err=True)


def mistake(message: str) -> Failure:
    """The failure of arguments that cannot be meant."""
    return Failure(message, Exit.USAGE)


@contextmanager
def failures() -> Iterator[None]:
    """Turn the errors of the project, of files and of Arrow into failures; a reader who has had enough is none."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is not written yet goes nowhere
        raise click.exceptions.Exit(Exit.OK) from None
    except Exception as error:
        code = _code(error)
        if code is None:
            raise
        raise Failure(_text(error), code) from error


@contextmanager
def kept_signals() -> Iterator[None]:
    """Put the handlers of signals back that Ray replaces when it connects: it would end the program its own way."""
    handlers = {number: signal.getsignal(number) for number in ENDING}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():
                signal.signal(number, handler)


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Stay connected to a cluster, with the program's own handlers of signals."""
    from topology import joined_cluster

    with ExitStack() as stack:
        with kept_signals():
            stack.enter_context(joined_cluster(address))
        yield


def wait_for_signal(is_over: Callable[[], bool]) -> None:
    """Wait until the program is asked to end, where that is how it ends well, or until it is over."""
    asked = threading.Event()
    with kept_signals():
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda number, frame: asked.set())
        while not asked.wait(LOOK_SECONDS) and not is_over():
            continue


def _code(error: Exception) -> Exit | None:
    """The exit code of an error; None for one that is a bug of ours."""
    from interlace.files.errors import FileError, MissingFileError
    from operators import JoinError, PredicateError, WindowError
    from topology import (
        ClusterError,
        ConnectionLostError,
        InterlaceError,
        OutOfOrderError,
        SchemaError,
        TopologyError,
        UnknownTopologyError,
    )

    kinds: list[tuple[tuple[type[Exception], ...], Exit]] = [
        ((UnknownTopologyError, MissingFileError, FileNotFoundError), Exit.NOT_FOUND),
        ((ClusterError, ConnectionLostError), Exit.UNREACHABLE),
        ((OutOfOrderError,), Exit.FAILED),
        ((PredicateError, WindowError, JoinError, SchemaError, TopologyError, FileError), Exit.USAGE),
        ((InterlaceError, OSError), Exit.FAILED),
    ]
    found = next((code for classes, code in kinds if isinstance(error, classes)), None)
    if found is None and type(error).__module__.startswith("pyarrow"):
        return Exit.FAILED
    return found


def _text(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"'{error.filename}': {error.strerror}"
    return str(error) or type(error).__name__


def say_json(value: Any) -> None:
    """Write a value as JSON on one line."""
    import json

    click.echo(json.dumps(value, ensure_ascii=False, default=str))


def is_terminal() -> bool:
    """Whether a person reads standard output."""
    return sys.stdout.isatty()
