"""Bolts whose output depends on everything that they have seen, in order: what is repeated differently shows."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from topology import Batch, Bolt, Emit, Input, MapBatches, Origin, Task, TaskContext, Time, Topology, TopologyBuilder

SCHEMA = pa.schema([("key", pa.int64()), ("number", pa.int64()), ("seen", pa.int64())])


@dataclass(frozen=True)
class Witness(Bolt):
    """Emits each row with a checksum of all that its task has seen up to it: rows, origins, sources and times."""

    holds: bool = False
    snapshots: bool = True
    tick_seconds: float | None = None

    @property
    def outputs(self) -> dict[str, pa.Schema | None]:
        return {"default": SCHEMA}

    def build(self, context: TaskContext) -> Task:
        return WitnessTask(self.holds) if self.snapshots else ForgetfulTask(self.holds)


class ForgetfulTask(Task):
    """holds: rows are emitted at the end of a step."""

    def __init__(self, holds: bool) -> None:
        self.seen = 0
        self.numbers: Counter[int] = Counter()
        self.holds = holds
        self.held: list[tuple[int, int, int]] = []

    def note(self, *what: object) -> None:
        self.seen = zlib.crc32(repr(what).encode(), self.seen)

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        self.note(origin.component, origin.task, batch.source)
        rows = []
        for key in batch.rows.column("key").to_pylist():
            self.note(key)
            self.numbers[key] += 1
            rows.append((key, self.numbers[key], self.seen))
        if self.holds:
            self.held += rows
            return ()
        return (emitted(rows),)

    def on_idle(self) -> Iterable[Emit]:
        held, self.held = self.held, []
        return (emitted(held),) if held else ()

    def on_event_time(self, time: Time) -> Iterable[Emit]:
        self.note("time", time)
        return ()

    def on_tick(self, seconds: float) -> Iterable[Emit]:
        self.note("tick", seconds)
        return ()

    def on_source_end(self, end: object, origin: Origin) -> Iterable[Emit]:
        self.note(end, origin.component)
        return ()

    def on_end(self) -> Iterable[Emit]:
        yield from self.on_idle()
        yield emitted([(-1, sum(self.numbers.values()), self.seen)])


class WitnessTask(ForgetfulTask):
    def snapshot(self) -> bytes:
        return json.dumps([self.seen, sorted(self.numbers.items()), self.held]).encode()

    def restore(self, snapshot: bytes) -> None:
        self.seen, numbers, held = json.loads(snapshot)
        self.numbers = Counter(dict(numbers))
        self.held = [tuple(row) for row in held]


def emitted(rows: list[tuple[int, int, int]]) -> Emit:
    columns = [pa.array(list(column), pa.int64()) for column in zip(*rows, strict=True)]
    return Emit(Batch("default", pa.record_batch(columns, schema=SCHEMA)))


def keys_only(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.select(["key"])


def diamond(with_snapshots: bool = True, event_time: str | None = None, ticks: bool = False) -> Topology:
    """Two inputs, a diamond of all groupings that have a state, and a last task that sees all of it."""
    builder = TopologyBuilder("diamond")
    builder.input("a", Input(event_time=event_time))
    builder.input("b", Input(event_time=event_time))
    builder.bolt("keys", MapBatches(keys_only), parallelism=2).shuffle_grouping("a").shuffle_grouping("b")
    often, seldom = (1.0, 2.5) if ticks else (None, None)
    left = builder.bolt("left", Witness(snapshots=with_snapshots, tick_seconds=often), parallelism=3)
    left.partial_key_grouping("keys", "key")
    builder.bolt("right", Witness(holds=True), parallelism=2).fields_grouping("keys", "key").all_grouping("a")
    last = builder.bolt("last", Witness(tick_seconds=seldom))
    last.global_grouping("left").shuffle_grouping("right").shuffle_grouping("b")
    builder.sink().global_grouping("last")
    return builder.build()
