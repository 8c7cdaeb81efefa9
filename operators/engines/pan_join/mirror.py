"""PanJoin's mirror: a copy of all subwindows' main arrays, where records become positions (section III-D).

In: the manager's commands to create, insert and expire, and each probe once; the workers' records.
Out: matches, then the punctuation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from indexes import Matches
from operators.engines.pan_join.commands import Probe
from operators.engines.pan_join.records import RecordColumn, expand_records
from operators.engines.pan_join.streams import PanStream
from operators.engines.pan_join.worker import HeldSubwindows, SubwindowSetting
from operators.engines.shared.answering import Answering
from operators.engines.shared.steps import Step
from operators.protocol.element_rows import ElementRows
from operators.protocol.limits import Limits
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import outputs_of, stream_of
from operators.protocol.streams import MATCHES
from topology import Batch, Bolt, Emit, Origin, Punctuation, Task, TaskContext


@dataclass(frozen=True)
class PanMirror(Bolt):
    """Stands between the workers and the collector; in the paper it is part of the manager."""

    setting: SubwindowSetting
    ordered: bool

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(MATCHES)

    def build(self, context: TaskContext) -> Task:
        return PanMirrorTask(self, len(context.origins))


class PanMirrorTask(Task):
    """Does the same insertions as the workers, one batch at a time.

    A record is valid for the array as it was when the worker probed it. So an input that has punctuated a batch waits
    until all have. Then the mirror holds the rows of this batch and none of the next, and expands its records.
    """

    def __init__(self, description: PanMirror, origins: int) -> None:
        self._negated = description.setting.negated
        self._ordered = description.ordered
        self._held = HeldSubwindows(description.setting)
        self._rows: list[ElementRows | None] = [None, None]
        self._records: tuple[list[RecordColumn], list[RecordColumn]] = ([], [])
        self._reached = [-1] * origins
        self._complete = -1
        self._answering = Answering()

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        match stream_of(batch.stream).kind:
            case PanStream.PROBED:
                probe = Probe.from_batch(batch, self._negated)
                self._rows[probe.side] = probe.rows
            case PanStream.RECORDS:
                record = RecordColumn.from_batch(batch)
                self._records[record.side].append(record)
            case _:
                self._held.take(batch)
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        self._reached[origin.index] = punctuation.seq
        if min(self._reached) == punctuation.seq:
            return self._expand(punctuation)
        return ()

    def blocked(self, origin: Origin) -> bool:
        return self._reached[origin.index] > self._complete

    def metrics(self) -> Mapping[str, float]:
        return self._held.metrics()

    def check_invariants(self) -> None:
        self._held.check_invariants()
        # Every input has sent this batch or the one before it.
        assert self._complete == min(self._reached)
        assert len(set(self._reached)) <= 2

    def _expand(self, punctuation: Punctuation) -> Iterator[Emit]:
        assert len(set(self._reached)) == 1, "workers punctuate as the manager does"
        step = Step(Limits(), (self._rows[LEFT], self._rows[RIGHT]), punctuation)
        yield from self._answering.answer(step, self._probe)
        self._rows = [None, None]
        self._records = ([], [])
        self._complete = punctuation.seq

    def _probe(self, side: int, rows: ElementRows, most: int) -> Matches | None:
        return expand_records(self._records[side], rows, self._held.sides[1 - side], most, self._ordered)
