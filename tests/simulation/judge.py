"""Says whether what a reader was given is right: by number, as soon as it is given, and in sum at the end."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from operators.steady_results import conformed
from tests.comparison import rows_of
from tests.operators.surface_check import late_rows
from tests.oracle import Expected
from tests.oracle_terms import is_absent
from tests.surface import SurfaceCase

BY_TIMING = ("source joined too late", "source was idle")
"""Reasons that depend on timing: which rows these are is known when they have been reported."""

Row = tuple[object, ...]


class WrongError(AssertionError):
    """The promise was broken."""


class Judge:
    """Keeps all results and all late rows by number.

    by_timing: whether rows may be late because of timing. Then what is right is known only at the end.
    """

    def __init__(self, case: SurfaceCase, by_timing: bool) -> None:
        self._case = case
        self._expected = case.expected()
        self._schema = self._expected.table.schema
        self.wanted: list[Row] | None = None if by_timing else rows_of(self._expected.table)
        self.got: list[Row] = []
        self.late: dict[int, pa.RecordBatch] = {}
        self.joined = self.rejected = self.unmatched = 0

    def hear(self, first: int, rows: pa.RecordBatch) -> None:
        """Take results; the same number must always be the same row, and the right one."""
        if first > len(self.got):
            raise WrongError(f"results {len(self.got)} to {first - 1} are missing")
        for number, row in enumerate(rows_of(pa.Table.from_batches([conformed(rows, self._schema)])), first):
            if number < len(self.got):
                if self.got[number] != row:
                    raise WrongError(f"result {number} was {self.got[number]}, and is {row} now")
            else:
                if self.wanted is not None and (number >= len(self.wanted) or self.wanted[number] != row):
                    right = self.wanted[number] if number < len(self.wanted) else "no result"
                    raise WrongError(f"result {number} is {row}, and {right} is right")
                self.got.append(row)

    def hear_late(self, first: int, rows: pa.RecordBatch) -> None:
        """Take rows that are reported as late; the same number must always be the same row."""
        for number in range(rows.num_rows):
            row = rows.slice(number, 1)
            known, told = (
                rows_of(pa.Table.from_batches([each])) for each in (self.late.setdefault(first + number, row), row)
            )
            if known != told:
                raise WrongError(f"late row {first + number} was {known}, and is {told} now")

    def conclude(self, rows: int) -> None:
        """Judge the whole: results, late rows, and that each of so many input rows is accounted for once."""
        missing = [number for number in range(max(self.late, default=-1) + 1) if number not in self.late]
        if missing:
            raise WrongError(f"late rows {missing} were never reported")
        reported = [] if not self.late else late_rows(pa.concat_tables(self._late_in_one_unit()))
        if len({row[:3] for row in reported}) < len(reported):
            raise WrongError("a row was reported as late twice")
        by_timing = {row[:3] for row in reported if row[4] in BY_TIMING}
        expected = self._expected if self.wanted is not None else self._without(by_timing)
        wanted = rows_of(expected.table)
        if self.got != wanted:
            raise WrongError(f"{len(self.got)} results, and {len(wanted)} are right; {len(self.late)} rows were late")
        right = {
            (row.stream, row.source, row.offset, None if is_absent(row.time) else row.time, row.reason)
            for row in self._expected.late
        }
        others = {row for row in reported if row[4] not in BY_TIMING}
        if wrong := others ^ {row for row in right if row[:3] not in by_timing}:
            raise WrongError(f"wrong or missing among the late rows: {wrong}")
        self.rejected = sum(row[4] == "no event time" for row in reported)
        self.joined = expected.joined
        self.unmatched = sum(table.num_rows for table in expected.ordered.values()) - self.joined
        if rows != self.joined + self.unmatched + len(reported):
            raise WrongError(
                f"{rows} rows came in: {self.joined} joined, {self.unmatched} unmatched, {self.rejected} rejected, "
                f"{len(reported) - self.rejected} late"
            )

    def _late_in_one_unit(self) -> list[pa.Table]:
        """The late rows; each stream reports its own unit, and the law counts in the finest of all."""
        tables = [table for of_stream in self._case.sources.values() for table in of_stream.values()]
        kinds = [table["ts"].type for table in tables if "ts" in table.column_names]
        units = {kind.unit for kind in kinds if pa.types.is_timestamp(kind)}
        finest = next((unit for unit in ("ns", "us", "ms", "s") if unit in units), None)
        found = [pa.Table.from_batches([self.late[number]]) for number in sorted(self.late)]
        if finest is None:
            return found
        place = found[0].schema.get_field_index("event_time")
        in_unit = [rows["event_time"].cast(pa.timestamp(finest)) for rows in found]
        return [rows.set_column(place, "event_time", times) for rows, times in zip(found, in_unit, strict=True)]

    def _without(self, gone: set[Row]) -> Expected:
        """What is right, given which rows were late because of timing: the join of all others."""
        sources = {
            stream: {
                name: pa.concat_tables(
                    [
                        table.slice(0, 0),
                        *(table.slice(row, 1) for row in range(table.num_rows) if (stream, name, row) not in gone),
                    ]
                )
                for name, table in of_stream.items()
            }
            for stream, of_stream in self._case.sources.items()
        }
        return replace(self._case, sources=sources).expected()
