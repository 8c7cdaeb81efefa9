"""The state of a gate as facts and rows, from which another gate goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from operators.intake.promise import Promise
from operators.intake.waiting_run import Part, SourceName
from operators.intake.waiting_source import WaitingSource
from topology import Facts, Time, time_as_json, time_from_json

Place = tuple[Time, SourceName]


@dataclass(frozen=True)
class GateState:
    """How far a gate is, and its sources with their waiting rows in order of time and offset.

    Whether a source was idle, and what it had promised, is part of it. A gate with a journal hears that again.
    """

    seq: int
    passed: Place | None
    sources: list[tuple[WaitingSource, list[Part]]]

    def written(self) -> tuple[Facts, list[pa.RecordBatch]]:
        """Return the facts, and the waiting rows with their times as last column."""
        facts = {
            "seq": self.seq,
            "passed": _written_place(self.passed),
            "sources": [_written_source(source, len(parts)) for source, parts in self.sources],
        }
        return facts, [part.rows.append_column("", pa.array(part.times)) for _, parts in self.sources for part in parts]

    @classmethod
    def read(cls, facts: Facts, rows: Iterator[pa.RecordBatch]) -> GateState:
        """The inverse of `written`."""
        sources = []
        for fact in facts["sources"]:
            source = WaitingSource(
                SourceName(fact["source"], fact["stream"]),
                joined=_read_place(fact["joined"]),
                frontier=time_from_json(fact["frontier"]),
                ended=fact["ended"],
                promised=time_from_json(fact.get("promised")),
                idle=fact.get("idle", False),
            )
            bound = time_from_json(fact["bound"])
            if bound is not None:
                source.promise = Promise(bound, time_from_json(fact["latest"]))
            sources.append((source, [_part(next(rows)) for _ in range(fact["parts"])]))
        return cls(facts["seq"], _read_place(facts["passed"]), sources)


def _written_source(source: WaitingSource, parts: int) -> dict[str, Any]:
    promise = source.promise
    return {
        "stream": source.name.stream,
        "source": source.name.name,
        "joined": _written_place(source.joined),
        "frontier": time_as_json(source.frontier),
        "ended": source.ended,
        "bound": None if promise is None else time_as_json(promise.bound),
        "latest": None if promise is None else time_as_json(promise.latest),
        "promised": time_as_json(source.promised),
        "idle": source.idle,
        "parts": parts,
    }


def _part(rows: pa.RecordBatch) -> Part:
    last = rows.num_columns - 1
    return Part.of(rows.select(list(range(last))), rows.column(last).to_numpy(), 0.0)


def _written_place(place: Place | None) -> list[Any] | None:
    return None if place is None else [time_as_json(place[0]), *place[1]]


def _read_place(written: list[Any] | None) -> Place | None:
    if written is None:
        return None
    time = time_from_json(written[0])
    assert time is not None, "a place has a time"
    return time, SourceName(written[1], written[2])
