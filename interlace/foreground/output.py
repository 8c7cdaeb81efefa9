"""Where results go: a table on the terminal, lines in a pipe, or a file."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from interlace.files.formats import Format, require_format
from interlace.files.writing import NewFile, writer_to

if TYPE_CHECKING:
    from interlace.foreground.notes import Notes

SHOWN_ROWS = 20


class Output(ABC):
    """Takes the results of a run, whose columns are known when the first rows come; a context manager.

    limit: take no more rows than this.
    """

    def __init__(self, limit: int | None) -> None:
        self.rows = 0
        self._limit = limit

    @property
    def is_full(self) -> bool:
        """Whether no more rows are wanted."""
        return self._limit is not None and self.rows >= self._limit

    def take(self, batch: pa.RecordBatch) -> None:
        """Take rows, or those that are still wanted."""
        if self._limit is not None:
            batch = batch.slice(0, self._limit - self.rows)
        if batch.num_rows:
            self.rows += batch.num_rows
            self.write(batch)

    @abstractmethod
    def begin(self, schema: pa.Schema) -> None:
        """Called once, before the first rows, or at the end if there are none."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows."""

    def conclude(self, notes: Notes, complete: bool) -> None:  # noqa: B027  pipes say nothing more
        """Say what there was; `complete`: the whole result has been taken."""

    def __enter__(self) -> Self:
        return self

    def __exit__(  # noqa: B027
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...


class TerminalOutput(Output):
    """A table of the first rows; the rest is counted."""

    def __init__(self, limit: int | None, notes: Notes) -> None:
        super().__init__(limit)
        self._notes = notes
        self._most = SHOWN_ROWS if limit is None else limit

    def begin(self, schema: pa.Schema) -> None:
        from rich.console import Console

        from interlace.foreground.table_view import TableView

        self._console = Console()
        self._view = TableView(self._console, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        wanted = self._most - (self.rows - batch.num_rows)
        if wanted > 0:
            with self._notes.cleared():
                self._view.print(batch.slice(0, wanted))

    def conclude(self, notes: Notes, complete: bool) -> None:
        count = f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
        if self.rows > self._most:
            count = f"{self._most:,} of {count} shown; -o FILE keeps them all"
        elif not complete:
            count = f"the first {count}"
        hidden = self._view.hidden
        also = f"; {len(hidden)} column{'s do' if len(hidden) > 1 else ' does'} not fit" if hidden else ""
        self._say(f"{count}{also} ({notes.seconds:.1f} s)")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.rows and error is not None and not isinstance(error, Exception):
            self._say(f"interrupted after {self.rows:,} rows")

    def _say(self, text: str) -> None:
        self._console.print(text, style="dim", highlight=False, soft_wrap=True)


class PipeOutput(Output):
    """Lines, or an Arrow stream, on standard output, each batch as soon as it is there."""

    def __init__(self, limit: int | None, kind: Format) -> None:
        super().__init__(limit)
        self._kind = kind

    def begin(self, schema: pa.Schema) -> None:
        self._out = sys.stdout.buffer
        self._writer = writer_to(self._out, schema, self._kind)
        self._out.flush()

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write(batch)
        self._out.flush()

    def conclude(self, notes: Notes, complete: bool) -> None:
        self._writer.close()
        self._out.flush()


class FileOutput(Output):
    """A file, which appears when the run has ended well."""

    def __init__(self, limit: int | None, path: str, kind: Format, *, as_json: bool) -> None:
        super().__init__(limit)
        self._path = path
        self._kind = kind
        self._as_json = as_json
        self._open = ExitStack()
        self._file: Any = None

    def begin(self, schema: pa.Schema) -> None:
        self._file = self._open.enter_context(NewFile(self._path, schema, self._kind))

    def write(self, batch: pa.RecordBatch) -> None:
        self._file.write(batch)

    def conclude(self, notes: Notes, complete: bool) -> None:
        self._open.close()
        if self._as_json:
            summary = {"output": self._path, "rows": self.rows, "seconds": round(notes.seconds, 3)}
            print(json.dumps(summary, ensure_ascii=False))
        else:
            rows = f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
            notes.say(f"{rows} in {self._path} ({notes.seconds:.1f} s)")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, traceback)


def output_to(path: str | None, given: Format | None, limit: int | None, notes: Notes, *, as_json: bool) -> Output:
    """The output that the options ask for; without any, a table for people and CSV for programs."""
    if path is not None and path != "-":
        return FileOutput(limit, path, require_format(path, given, "--format-out"), as_json=as_json)
    if given is None and not as_json and path is None and sys.stdout.isatty():
        return TerminalOutput(limit, notes)
    return PipeOutput(limit, given or ("jsonl" if as_json else "csv"))
