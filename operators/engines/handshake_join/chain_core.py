"""The chain of handshake join: two flows in opposite directions, and a core wherever both pass.

The left stream enters at core 0 and flows towards core n - 1. The right stream enters at core n - 1 and flows towards
core 0. Every row passes every core and probes the rows that are stored there.

A topology has no cycles, so a core does not send to its neighbours itself. Each flow is a chain of links, one beside
each core; a link serves its core and the next link. A link passes rows on before its core has seen them, which is the
fast-forwarding of low-latency handshake join.

    left stream  ->  left-flow-0  ->  left-flow-1  ->  left-flow-2
                         |                |                |
                  handshake-core-0  handshake-core-1  handshake-core-2
                         |                |                |
                     right-flow-0  <-  right-flow-1  <-  right-flow-2  <-  right stream

The original must not lose or repeat pairs whose rows cross between two cores. Here a core takes a step when both flows
have brought it, stores the step's rows of both sides and then probes; each probe row carries the positions it may meet.
So it does not matter which of two rows passes first, and every pair is found by its later row, at the one core where
the earlier row is stored during that step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from indexes import Live, prepare_kernels
from operators.engines.handshake_join.streams import ENTERING, LEAVING, SEGMENT, FlowStream
from operators.engines.shared.index_setting import IndexSetting, index_note
from operators.engines.shared.steps import Step
from operators.engines.shared.store_and_probe import StoreAndProbeTask
from operators.protocol.columns import NO_ROWS, keys_of
from operators.protocol.element_rows import ElementRows
from operators.protocol.limits import Limits
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import StreamId, outputs_of, stream_of
from operators.protocol.streams import LIMITS, PROBES, JoinStream, answer_streams
from topology import Batch, Bolt, Emit, Origin, PassOn, Punctuation, Task, TaskContext


@dataclass(frozen=True)
class FlowLink(Bolt):
    """The link of one side's flow beside a core, `hops` links away from where the side enters the chain of `cores`.

    moving: rows stored at the core move on when newer ones come; otherwise the flow only carries rows past.
    """

    side: int
    hops: int
    cores: int
    dimensions: int
    moving: bool = False

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        passed = (LIMITS, PROBES[self.side])
        moved = (ENTERING[self.side], LEAVING[self.side], SEGMENT[self.side])
        return outputs_of((*passed, *moved) if self.moving else passed)

    def build(self, context: TaskContext) -> Task:
        return MovingFlow(self) if self.moving else PassOn()


class MovingFlow(Task):
    """Holds one segment of a side's window: rows wait here until newer ones push them on.

    The live rows are cut into one segment per core, of equal length, with the newest where the side enters. After each
    step the rows that have become too old for this segment leave for the next link; they never come back.

        cores=3, 7 rows live, positions 10..16:   hops 0: 14 15 16   hops 1: 11 12 13   hops 2: 10
        then 17, 18 come and 10 dies:             hops 0: 16 17 18   hops 1: 13 14 15   hops 2: 11 12

    The core gets the rows that enter, and the position where its segment begins. The last link keeps rows until they
    have expired.
    """

    def __init__(self, description: FlowLink) -> None:
        self._side = description.side
        self._hops = description.hops
        self._cores = description.cores
        self._keys = [f"key{d}" for d in range(description.dimensions)]
        self._held: deque[Batch] = deque()
        self._arrived = 0
        self._dead = 0
        self._begin = 0

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        match stream_of(batch.stream).kind:
            case FlowStream.LEAVING:
                yield from self._enter(batch)
            case JoinStream.LIMITS:
                yield Emit(batch)
                self._dead = Limits.from_batch(batch).live[self._side]
            case _:
                yield Emit(batch)
                self._arrived = batch.end
                if self._hops == 0:
                    yield from self._enter(Batch(batch.stream, batch.rows.select(self._keys), first=batch.first))

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        # rows that expire in this step may still be met in it: the last segment moves on only afterwards
        begin = self._begin
        if self._hops < self._cores - 1:
            length = -(-(self._arrived - self._dead) // self._cores)
            begin = self._begin = max(begin, self._dead, self._arrived - (self._hops + 1) * length)
        else:
            self._begin = self._dead
        yield from self._leave()
        yield Emit(Batch(SEGMENT[self._side].name, NO_ROWS, labels=(begin,)))
        yield Emit(punctuation)

    def check_invariants(self) -> None:
        # held rows are in order and without gaps
        ends = [batch.end for batch in self._held]
        assert all(batch.first == end for batch, end in zip(list(self._held)[1:], ends, strict=False))
        # rows that have left are not held
        assert not self._held or self._held[0].first >= self._begin

    def _enter(self, batch: Batch) -> Iterator[Emit]:
        self._held.append(batch)
        yield Emit(Batch(ENTERING[self._side].name, batch.rows, first=batch.first))

    def _leave(self) -> Iterator[Emit]:
        """Emit the rows before the segment's beginning to the next link; at the last link they have expired."""
        while self._held and self._held[0].first < self._begin:
            batch = self._held.popleft()
            rows = min(self._begin - batch.first, batch.rows.num_rows)
            if rows < batch.rows.num_rows:
                self._held.appendleft(Batch(batch.stream, batch.rows.slice(rows), first=batch.first + rows))
            if self._hops < self._cores - 1:
                yield Emit(Batch(LEAVING[self._side].name, batch.rows.slice(0, rows), first=batch.first))


@dataclass(frozen=True)
class HandshakeCore(Bolt):
    """Core `number` of `cores`; moving: it stores what its links hold, otherwise one row in `cores`."""

    number: int
    cores: int
    negated: tuple[bool, ...]
    ordered: bool
    setting: IndexSetting | None = None
    moving: bool = False
    counts: bool = False

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(answer_streams(self.counts))

    @property
    def note(self) -> str:
        rows = "rows passing by" if self.moving else f"rows {self.number}, {self.number + self.cores}, ..."
        return f"{rows}; {index_note(self.setting)}"

    def prepare(self) -> None:
        prepare_kernels()

    def build(self, context: TaskContext) -> Task:
        return (MovingCoreTask if self.moving else HandshakeCoreTask)(self, len(context.origins))


class HandshakeCoreTask(StoreAndProbeTask):
    """Takes a step when both flows have brought it; a flow that is ahead waits."""

    def __init__(self, description: HandshakeCore, flows: int) -> None:
        share = (0, 1) if description.moving else (description.number, description.cores)
        super().__init__(description.negated, description.setting, description.ordered, *share)
        self._reached = [-1] * flows
        self._taken = -1

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        self._reached[origin.index] = punctuation.seq
        if min(self._reached) > self._taken:
            self._taken = punctuation.seq
            return super().on_punctuation(punctuation, origin)
        return ()

    def blocked(self, origin: Origin) -> bool:
        return self._reached[origin.index] > self._taken

    def check_invariants(self) -> None:
        super().check_invariants()
        # the flows are in the same step or one apart
        assert min(self._reached) == self._taken


class MovingCoreTask(HandshakeCoreTask):
    """Stores the rows that its links hold: those that entered, from where its segment begins."""

    def __init__(self, description: HandshakeCore, flows: int) -> None:
        super().__init__(description, flows)
        self._entering: tuple[list[Batch], list[Batch]] = ([], [])
        self._segment = [0, 0]

    def on_other(self, stream: StreamId, batch: Batch) -> Iterable[Emit]:
        if stream.kind is FlowStream.ENTERING:
            self._entering[stream.side].append(batch)
        else:
            (self._segment[stream.side],) = batch.labels
        return ()

    def store(self, step: Step) -> None:
        for side in (LEFT, RIGHT):
            share, probes = self._shares[side], step.rows[1 - side]
            for batch in self._entering[side]:
                keys = [keys_of(column) for column in batch.rows.columns]
                share.store(batch.first, keys, None if probes is None else probes.intervals)
            self._entering[side].clear()
            # rows before the segment are another core's by now, and no probe row asks for them here
            share.expire(self._segment[side])

    def expire(self, step: Step) -> None:
        """The links say when rows leave, before the step is answered."""

    def live(self, side: int, rows: ElementRows) -> Live:
        # rows before the segment are another core's by now, later ones not here yet
        end = np.minimum(rows.live.end, self._shares[1 - side].stored)
        return Live(np.maximum(rows.live.start, self._segment[1 - side]), end)
