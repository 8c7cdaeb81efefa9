"""The gate: merges any number of physical sources into one total order.

The order is (event time, source name, offset), and then the stream's name should two streams use one source name. A row
may pass when no source that is still open can deliver an earlier one. So the merged sequence is a function of the rows
alone: not of when they arrive, nor of how they are cut into batches.

In: batches of each stream, each source in its own order; announcements and ends of sources.
Out: for each release one batch per stream, with the sequence number of each row in column `#seq` (and its time in
`#time` where the stream has no column for it), then a punctuation.

Rows that cannot pass yet wait here, on disk beyond a bound, because the source they wait for may need the very room
that they occupy. The gate releases when it has a full step of rows or when nothing more waits to be taken: so steps
grow with the backlog, and an idle stream is passed on at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from operators.scale_gate import STEP_ROWS, Ready, ScaleGate
from operators.waiting_source import SourceName
from topology import Batch, Bolt, Emit, End, Origin, Punctuation, Task, TaskContext, Watermark
from topology.event_time import Times, event_times

log = logging.getLogger("interlace")

SEQ = "#seq"
TIME = "#time"
"""The row's number in its source, sent on where no column holds the event time."""

DEFAULT_STEP_ROWS = STEP_ROWS


@dataclass(frozen=True)
class Gate(Bolt):
    """Merges the streams in `event_time`, a mapping of stream to its event-time column (None: the row's number)."""

    event_time: tuple[tuple[str, str | None], ...]
    step_rows: int = DEFAULT_STEP_ROWS

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return {stream: None for stream, _ in self.event_time}

    @property
    def note(self) -> str:
        return "ordered by event time, source, offset"

    def build(self, context: TaskContext) -> Task:
        return GateTask(dict(self.event_time), self.step_rows, context.spill_directory)


class GateTask(Task):
    """Feeds a `ScaleGate` and is its one reader; knows how far each stream is numbered."""

    def __init__(
        self, event_time: Mapping[str, str | None], step_rows: int, spill_directory: str | None = None
    ) -> None:
        self._event_time = event_time
        self._step_rows = step_rows
        self._gate = ScaleGate(step_rows=step_rows, spill_directory=spill_directory)
        self._sources: dict[str, set[SourceName]] = {stream: set() for stream in event_time}
        self._announced: set[str] = set()
        self._positions = dict.fromkeys(event_time, 0)
        self._fresh = 0
        self._rejected = 0
        self._late = 0

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        source = self._source(origin.component, batch.source)
        rows, times = self._timed(batch, self._event_time[source.stream])
        late = self._gate.add(source, rows, times, batch.born)
        if late:
            self._late += late
            log.warning(
                "stream '%s': %d rows of source '%s' are late and left out: announce every source before the first "
                "rows are sent (launch(..., sources=...) or running.open(...))",
                source.stream,
                late,
                source.name,
            )
        self._fresh += len(times) - late
        if self._fresh >= self._step_rows:
            yield from self._release()

    def on_watermark(self, watermark: Watermark, origin: Origin) -> Iterable[Emit]:
        source = self._source(origin.component, watermark.source)
        if watermark.time is not None:
            self._gate.promise(source, watermark.time)
        return ()

    def on_source_end(self, end: End, origin: Origin) -> Iterable[Emit]:
        self._gate.end([self._source(origin.component, end.source)])
        return ()

    def on_input_end(self, origin: Origin) -> Iterable[Emit]:
        self._announced.add(origin.component)
        self._gate.end(self._sources[origin.component])
        return ()

    def on_idle(self) -> Iterable[Emit]:
        return self._release()

    def on_end(self) -> Iterable[Emit]:
        yield from self._release()
        self._gate.close()

    def metrics(self) -> Mapping[str, float]:
        return {
            "merged": float(self._gate.merged),
            "rejected": float(self._rejected),
            "late": float(self._late),
            "waiting_rows": float(self._gate.waiting),
            "spilled_bytes": float(self._gate.spilled_bytes),
        }

    def check_invariants(self) -> None:
        # every row in the order has its position in its stream
        assert sum(self._positions.values()) == self._gate.merged
        self._gate.check_invariants()

    def _source(self, stream: str, name: str) -> SourceName:
        self._announced.add(stream)
        source = SourceName(name, stream)
        if source not in self._sources[stream]:
            self._sources[stream].add(source)
            self._gate.open(source)
        return source

    def _timed(self, batch: Batch, event_time: str | None) -> tuple[pa.RecordBatch, Times]:
        """The rows of a batch that have a time, and their times; the others are counted as rejected."""
        if event_time is None:
            numbers = np.arange(batch.first, batch.end, dtype=np.int64)
            return batch.rows.append_column(TIME, pa.array(numbers)), numbers
        times, valid = event_times(batch.rows.column(event_time))
        if valid is None:
            return batch.rows, times
        self._rejected += int(len(valid) - valid.sum())
        return batch.rows.filter(pa.array(valid)), times[valid]

    def _release(self) -> Iterator[Emit]:
        """Send all that may pass, a step at a time."""
        self._fresh = 0
        if len(self._announced) < len(self._event_time):
            return  # nobody knows yet when the rows of a stream begin
        while (step := self._gate.next_ready()) is not None:
            for stream in self._event_time:
                if stream in step.streams:
                    yield Emit(self._numbered(stream, step))
            yield Emit(Punctuation(step.end - 1, step.born))

    def _numbered(self, stream: str, step: Ready) -> Batch:
        merged = step.streams[stream]
        first = self._positions[stream]
        self._positions[stream] += len(merged.seq)
        return Batch(stream, merged.rows.append_column(SEQ, pa.array(merged.seq)), first=first, born=step.born)
