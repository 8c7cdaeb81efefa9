"""Sources that topologies read by themselves: two methods, whatever is behind them.

`from_source` makes a spout of a source: its tasks share the partitions. `pump` sends the rows of a source to an input
of a running topology instead, with their offsets: with a state, it goes on after a failure where it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from topology.entry.frames import Rows, arrow_table
from topology.graph.components import DEFAULT_STREAM, Emit, Spout, SpoutTask, TaskContext
from topology.graph.errors import OutOfOrderError
from topology.graph.event_time import check_event_time, event_times, first_backwards
from topology.graph.messages import Batch, Time, Watermark
from topology.handle.handle import Handle


class Source(ABC):
    """Rows in partitions, such as files or the partitions of a topic. A description: picklable, without connections."""

    @abstractmethod
    def partitions(self) -> Sequence[str]:
        """Return the names of the partitions; each is read in its own order. Called in every task."""

    @abstractmethod
    def read(self, partition: str, offset: int) -> Iterator[Rows]:
        """Yield the rows of a partition, from the row of number `offset` on, in batches of any kind.

        The same partition must have the same rows in the same order whenever it is read. It ends when the iterator
        does; one that waits for new rows blocks only its own task.
        """


def from_source(source: Source, event_time: str | None = None) -> SourceSpout:
    """Make a spout of a source, for `TopologyBuilder.spout`; its tasks share the partitions.

    event_time: the column with the event time, in order within each partition; the spout then emits watermarks.
    """
    return SourceSpout(source, event_time)


def pump(source: Source, running: Handle, stream: str) -> int:
    """Send all rows of a source to an input, each partition as a source of that name; return how many were new.

    It goes on behind the rows that the input has already: after a failure, call it again. Partitions take turns, batch
    by batch, and end when their rows do.
    """
    names = list(source.partitions())
    running.open(stream, *names)
    offsets = {name: running.next_offset(stream, name) for name in names}
    began = sum(offsets.values())
    left = {name: source.read(name, offset) for name, offset in offsets.items()}
    while left:
        for name, batches in list(left.items()):
            rows = next(batches, None)
            if rows is None:
                running.finish(stream, name)
                del left[name]
            elif (table := arrow_table(f"source '{name}'", rows)).num_rows:
                offsets[name] = running.send(stream, table, name, offset=offsets[name])
    return sum(offsets.values()) - began


@dataclass(frozen=True)
class SourceSpout(Spout):
    """A spout that reads a source; see `from_source`."""

    source: Source
    event_time: str | None = None

    @property
    def note(self) -> str:
        return type(self.source).__name__ + (f", event time: {self.event_time}" if self.event_time else "")

    def build(self, context: TaskContext) -> SpoutTask:
        names = list(self.source.partitions())[context.task :: context.parallelism]
        return _SourceTask(context.component, self.source, names, self.event_time)


class _SourceTask(SpoutTask):
    def __init__(self, component: str, source: Source, names: Sequence[str], event_time: str | None) -> None:
        self._component = component
        self._source = source
        self._names = names
        self._event_time = event_time
        self._latest: dict[str, Time | None] = dict.fromkeys(names)
        self._sent = 0

    def batches(self) -> Iterator[Emit]:
        left = {name: iter(self._source.read(name, 0)) for name in self._names}
        promised: Time | None = None
        while left:
            for name, batches in list(left.items()):
                rows = next(batches, None)
                if rows is None:
                    del left[name], self._latest[name]
                else:
                    yield from self._emitted(name, rows)
                known = [time for time in self._latest.values() if time is not None]
                if known and len(known) == len(self._latest) and (promised is None or min(known) > promised):
                    promised = min(known)
                    yield Emit(Watermark(promised))

    def _emitted(self, name: str, rows: Rows) -> Iterator[Emit]:
        table = arrow_table(f"spout '{self._component}', partition '{name}'", rows)
        for batch in table.combine_chunks().to_batches():
            times = self._times(name, batch)
            yield Emit(Batch(DEFAULT_STREAM, batch, first=self._sent, times=times))
            self._sent += batch.num_rows

    def _times(self, name: str, batch: pa.RecordBatch) -> tuple[Time, Time] | None:
        if self._event_time is None:
            return None
        where = f"spout '{self._component}', partition '{name}'"
        check_event_time(name, batch.schema, self._event_time, what=f"spout '{self._component}', partition")
        times, valid = event_times(batch.column(self._event_time))
        found = first_backwards(times, valid, self._latest[name])
        if found is not None:
            raise OutOfOrderError(
                f"{where}: '{self._event_time}' goes backwards ({found[1]} is followed by {found[2]}): sort each "
                f"partition by it, or leave out event_time="
            )
        timed = times if valid is None else times[valid]
        if not len(timed):
            return None
        self._latest[name] = timed[-1].item()
        return timed[0].item(), timed[-1].item()
