"""Rows that were sent to a running topology, kept in files, to be sent again in tests."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, unquote

import pyarrow as pa

from topology import Handle, Rows, arrow_table


class Recording:
    """A directory with the rows of each source of each stream, in the batches in which they were sent.

    >>> import interlace as il, tempfile
    >>> from interlace.testing import Recording
    >>> join = il.StreamJoin("R", "S", "R.x < S.x", il.CountWindow(10))
    >>> directory = tempfile.mkdtemp()
    >>> with join.launch() as running, Recording(directory).of(running) as feed:
    ...     feed.send("R", {"x": [1, 2]}, source="a")
    2
    >>> Recording(directory).inputs()["R"]["a"][0].to_pydict()
    {'x': [1, 2]}
    """

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)

    def of(self, running: Handle) -> RecordedFeed:
        """Return something to send by, in a `with` block: rows go to the topology, and those it has taken are kept."""
        return RecordedFeed(self.directory, running)

    def inputs(self) -> dict[str, dict[str, list[pa.RecordBatch]]]:
        """Return the batches of each source by stream: the inputs of `run`."""
        found: dict[str, dict[str, list[pa.RecordBatch]]] = {}
        for file in sorted(self.directory.glob("*/*.arrow")):
            with pa.ipc.open_stream(file.read_bytes()) as reader:
                found.setdefault(unquote(file.parent.name), {})[unquote(file.stem)] = list(reader)
        return found


class RecordedFeed:
    """Sends rows to a running topology and keeps them; `Recording.of` makes it."""

    def __init__(self, directory: Path, running: Handle) -> None:
        self._directory = directory
        self._running = running
        self._writers: dict[tuple[str, str], Any] = {}

    def send(self, stream: str, rows: Rows, source: str | None = None) -> int:
        """As `running.send`."""
        table = arrow_table(f"stream '{stream}'", rows)
        following = self._running.send(stream, table, source)
        writer = self._writers.get((stream, source or stream))
        if writer is None:
            path = self._directory / quote(stream, safe="") / f"{quote(source or stream, safe='')}.arrow"
            path.parent.mkdir(parents=True, exist_ok=True)
            writer = self._writers[stream, source or stream] = pa.ipc.new_stream(str(path), table.schema)
        writer.write(table)
        return following

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for writer in self._writers.values():
            writer.close()
