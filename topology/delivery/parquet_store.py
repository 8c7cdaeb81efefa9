"""Results as Parquet files: each row once, in files that appear whole, whatever dies in between.

    part-00000000000000000000.parquet     rows 0 to 249,999
    part-00000000000000250000.parquet     rows 250,000 to 499,999
    _staged-00000000000000500000-00000000000000501233.arrow       rows that no part has yet
    _manifest.json                        the parts with their numbers
    _complete.json                        how many rows there are, when these are all

Parts are cut by number alone: part k has the rows from k * n to (k + 1) * n - 1, and the last one what is left. The
same number is always the same row, so a part has the same rows whoever writes it, however often: a process that has
been replaced, and writes late, replaces a file by its like. Rows that do not fill a part are staged until they do.
Readers of Parquet skip names that begin with _, so a directory of these files is a table of all rows in whole parts.

The manifest is written after the part that it names. It may lag behind the parts, also because a process that has been
replaced writes it late, and never runs ahead. That these are all the rows is said by a file of its own, which has one
content whoever writes it: so it is never taken back.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from topology.delivery.result_files import ResultFiles, open_files
from topology.delivery.result_store import ResultStore
from topology.graph.errors import StoreError

ROWS_PER_FILE = 250_000
MANIFEST = "_manifest.json"
COMPLETE = "_complete.json"
VERSION = 1

_PART = re.compile(r"part-(\d{20})\.parquet")
_STAGED = re.compile(r"_staged-(\d{20})-(\d{20})\.arrow")


class ParquetStore(ResultStore):
    """Files in a directory or below a prefix of a bucket; one sink's results, and nothing else.

    place:         a path, file:///path or s3://bucket/prefix.
    rows_per_file: how many rows a part has; it cannot be changed later.
    """

    def __init__(self, place: str | Path | ResultFiles, rows_per_file: int = ROWS_PER_FILE) -> None:
        if rows_per_file < 1:
            raise StoreError(f"rows_per_file={rows_per_file}: give a whole number of 1 or more")
        self._files = place if isinstance(place, ResultFiles) else open_files(place)
        self._rows_per_file = rows_per_file
        self._parts: dict[int, int] = {}
        self._staged: dict[tuple[int, int], str] = {}
        self._next = 0
        self._complete = False

    def next_number(self) -> int:
        names = self._files.names()
        self._complete = COMPLETE in names
        self._read_manifest(MANIFEST in names)
        for name in sorted(names):
            part, staged = _PART.fullmatch(name), _STAGED.fullmatch(name)
            if part is not None and int(part[1]) not in self._parts:
                self._parts[int(part[1])] = self._rows_of(name)
            elif staged is not None:
                self._staged[int(staged[1]), int(staged[2])] = name
        self._next = self._end_of_parts()
        self._forget_staged()
        for first, last in sorted(self._staged):
            if first <= self._next <= last:
                self._next = last + 1
        if MANIFEST not in names:
            self._write_manifest()
        return self._next

    def store(self, first: int, rows: pa.RecordBatch) -> None:
        if first > self._next:
            raise StoreError(f"rows from {first} on were given, but those from {self._next} on are missing")
        rows = rows.slice(min(self._next - first, rows.num_rows))
        while rows.num_rows:
            room = self._rows_per_file - self._next % self._rows_per_file
            taken = rows.slice(0, room)
            rows = rows.slice(taken.num_rows)
            if taken.num_rows == room:
                self._close_part(taken)
            else:
                self._stage(taken)

    def finish(self) -> None:
        if self._next > self._end_of_parts():
            self._close_part(None)
        if not self._complete:
            self._write_manifest()
            written = {"version": VERSION, "rows": self._next}
            self._files.put(COMPLETE, pa.py_buffer(json.dumps(written).encode()))
            self._complete = True

    def _stage(self, rows: pa.RecordBatch) -> None:
        last = self._next + rows.num_rows - 1
        name = f"_staged-{self._next:020}-{last:020}.arrow"
        out = pa.BufferOutputStream()
        with pa.ipc.new_stream(out, rows.schema) as writer:  # not Parquet, which would change some types
            writer.write_batch(rows)
        self._files.put(name, out.getvalue())
        self._staged[self._next, last] = name
        self._next = last + 1

    def _close_part(self, rest: pa.RecordBatch | None) -> None:
        """Write a part of what is staged and the rest; it has all its rows, or is the last."""
        begin = self._end_of_parts()
        name = f"part-{begin:020}.parquet"
        try:
            table = self._staged_from(begin, rest)
            self._files.put(name, _as_parquet(table))
            count = table.num_rows
        except FileNotFoundError:  # another process has written the part, and removed what was staged for it
            count = self._rows_of(name)
        self._parts[begin] = count
        self._next = begin + count
        self._write_manifest()
        self._forget_staged()

    def _staged_from(self, begin: int, rest: pa.RecordBatch | None) -> pa.Table:
        """The rows from a number on, as far as they are staged, and then the rest; others may have cut differently."""
        pieces, at = [], begin
        for (first, last), name in sorted(self._staged.items()):
            if first <= at <= last:
                pieces.append(pa.ipc.open_stream(self._files.get(name)).read_all().slice(at - first))
                at = last + 1
        assert at == self._next, "what is staged has no gaps"
        if rest is not None:
            pieces.append(pa.Table.from_batches([rest]))
        return pa.concat_tables(pieces, promote_options="default").slice(0, self._rows_per_file)

    def _forget_staged(self) -> None:
        """Remove what is in the parts."""
        end = self._end_of_parts()
        for (first, last), name in list(self._staged.items()):
            if last < end:
                self._files.delete(name)
                del self._staged[first, last]

    def _rows_of(self, part: str) -> int:
        rows: int = pq.read_metadata(pa.BufferReader(self._files.get(part))).num_rows
        return rows

    def _end_of_parts(self) -> int:
        """The number behind the last row of the parts from 0 on without a gap."""
        end = 0
        while end in self._parts:
            end += self._parts[end]
        return end

    def _read_manifest(self, exists: bool) -> None:
        if not exists:
            return
        written: dict[str, Any] = json.loads(self._files.get(MANIFEST).to_pybytes())
        if written["version"] != VERSION or written["rows_per_file"] != self._rows_per_file:
            raise StoreError(
                f"the files were written with version {written['version']} and rows_per_file="
                f"{written['rows_per_file']}; this is version {VERSION} with {self._rows_per_file}: give the same, or "
                f"another place"
            )
        self._parts = {part["first"]: part["rows"] for part in written["parts"]}

    def _write_manifest(self) -> None:
        parts = [
            {"name": f"part-{first:020}.parquet", "first": first, "rows": rows}
            for first, rows in sorted(self._parts.items())
        ]
        written = {"version": VERSION, "rows_per_file": self._rows_per_file, "parts": parts}
        self._files.put(MANIFEST, pa.py_buffer(json.dumps(written, indent=1).encode()))


def _as_parquet(table: pa.Table) -> pa.Buffer:
    out = pa.BufferOutputStream()
    pq.write_table(table, out)
    return out.getvalue()
