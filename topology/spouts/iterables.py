"""Sources over what Python and the file system have: iterables, generators, files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from topology.entry.frames import Rows, arrow_table
from topology.graph.errors import TopologyError
from topology.spouts.source import Source, SourceSpout

ROWS_TOGETHER = 4096
"""Rows of a list are read in batches of at most this many."""


def from_iterable(rows: Iterable[Rows] | Callable[[], Iterable[Rows]], event_time: str | None = None) -> SourceSpout:
    """Make a spout of an iterable of batches, frames, dicts of columns, or dicts that are rows.

    rows:       a list or another iterable that can be sent to another process; or a function that returns one, such as
                a generator function, which is called where the spout runs. It may go on forever. Single rows that it
                yields leave one by one; batches are faster.
    event_time: see `from_source`.

    >>> import interlace as il
    >>> def squares():
    ...     for x in range(3):
    ...         yield {"x": x, "square": x * x}
    >>> chain = il.source("squares", il.from_iterable(squares))
    >>> il.testing.run(chain.sink(), {})["results"].to_pydict()
    {'x': [0, 1, 2], 'square': [0, 1, 4]}
    """
    if isinstance(rows, Iterator):
        raise TopologyError(
            f"from_iterable: {type(rows).__name__} can be read only once and not be sent to another process: give a "
            f"list, or the function that makes it"
        )
    return SourceSpout(IterableSource(rows), event_time)


def from_files(paths: str | Path | Sequence[str | Path], event_time: str | None = None) -> SourceSpout:
    """Make a spout of Parquet, Arrow, CSV, JSON or ORC files, by the ends of their names; each file is a partition.

    paths:      a path, a pattern such as "data/*.parquet", or a list of these, as the machines see them that run it.
    event_time: see `from_source`; in order within each file.
    """
    given = [paths] if isinstance(paths, str | Path) else paths
    return SourceSpout(FileSource(tuple(str(path) for path in given)), event_time)


@dataclass(frozen=True)
class IterableSource(Source):
    """One partition: the rows of an iterable, or of what a function returns."""

    rows: Any

    def partitions(self) -> Sequence[str]:
        return ["rows"]

    def read(self, partition: str, offset: int) -> Iterator[Rows]:
        return _from_offset(self._batches(), offset)

    def _batches(self) -> Iterator[pa.Table]:
        items = self.rows() if callable(self.rows) else self.rows
        if isinstance(items, list | tuple) and all(map(_is_row, items)):
            items = [items[first : first + ROWS_TOGETHER] for first in range(0, len(items), ROWS_TOGETHER)]
        for item in items:
            yield arrow_table("from_iterable", [item] if _is_row(item) else item)


@dataclass(frozen=True)
class FileSource(Source):
    """A partition for each file; patterns are looked up where they are read."""

    paths: tuple[str, ...]

    def partitions(self) -> Sequence[str]:
        found = [name for path in self.paths for name in (sorted(glob(path)) if glob(path) else [path])]
        missing = [name for name in found if not Path(name).exists()]
        if missing:
            raise TopologyError(f"from_files: '{missing[0]}' does not exist here: paths are read where the spout runs")
        return found

    def read(self, partition: str, offset: int) -> Iterator[Rows]:
        kind = Path(partition).suffix.lstrip(".").lower()
        kinds = {"arrow": "ipc", "feather": "feather", "csv": "csv", "json": "json", "parquet": "parquet", "orc": "orc"}
        if kind not in kinds:
            raise TopologyError(f"from_files: '{partition}' does not end in one of {', '.join(kinds)}")
        dataset = pa.dataset.dataset(partition, format=kinds[kind])
        return _from_offset((pa.Table.from_batches([batch]) for batch in dataset.to_batches()), offset)


def _from_offset(tables: Iterator[pa.Table], offset: int) -> Iterator[Rows]:
    for table in tables:
        if offset < table.num_rows:
            yield table.slice(offset)
        offset = max(0, offset - table.num_rows)


def _is_row(item: object) -> bool:
    return isinstance(item, Mapping) and not any(
        hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping) for value in item.values()
    )
