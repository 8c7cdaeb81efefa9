"""What the program says beside its results: notes and progress, on standard error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

QUIET_SECONDS = 0.3
"""Whatever is done by then gets no progress bar."""


class Notes:
    """Writes notes, and on a terminal a line that shows how far the work has come."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._is_live = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._progress: Any = None
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """Write a note."""
        if not self._quiet:
            with self.cleared():
                click.echo(click.style("note: ", dim=True) + text, err=True)

    @property
    def seconds(self) -> float:
        """Since the program began."""
        return time.monotonic() - self._began

    @contextmanager
    def work(self, what: str, total: int | None) -> Iterator[Callable[[int, str], None]]:
        """Show a bar while something is done: the body is given a function that takes what is done, and a remark."""
        if not self._is_live:
            yield lambda done, remark: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[rows]}"),
            TextColumn("[dim]{task.fields[remark]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
            refresh_per_second=8,
        )
        task = bar.add_task(what, total=total, rows="", remark="")
        begin = time.monotonic()

        def show(done: int, remark: str) -> None:
            if self._progress is None and time.monotonic() - begin > QUIET_SECONDS:
                self._progress = bar
                bar.start()
            known = total is not None and done < total  # a total may be a guess
            rows = f"{done:,} of {total:,} rows" if known else f"{done:,} rows"
            # Never complete: work goes on when all rows are read, and so does the clock.
            bar.update(task, completed=done if total is None else min(done, total - 1), rows=rows, remark=remark)

        try:
            yield show
        finally:
            if self._progress is bar:
                self._progress = None
                bar.stop()

    @contextmanager
    def cleared(self) -> Iterator[None]:
        """Take the progress bar away while something else is written."""
        bar = self._progress
        if bar is None:
            yield
            return
        bar.stop()
        try:
            yield
        finally:
            bar.start()
