"""The collector: turns the elements' matches into result rows, in the order that the user asked for.

In: payload rows and limits from the router, matches from every element that answers probes. Each of them punctuates.
Rows up to the smallest punctuation are complete, and their results are emitted in order. With strict or outer ordering
an input that is ahead of the others waits. With weaker orderings, answers to rows of the open group are emitted as they
come, as soon as their payload is there.
Out: result rows, then the punctuation, once for each step.

The collector also evaluates, on candidate pairs, the conditions that keys could not decide (`pair_check`).
`result_kinds` turns pairs and rows into the results of a kind of join.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from operators.intake.gate_task import SEQ
from operators.intake.time_unit import TIME
from operators.protocol.answers import answered_rows, counts_of, matches_of
from operators.protocol.columns import values_of
from operators.protocol.expired_rows import ExpiredRows
from operators.protocol.limits import Limits
from operators.protocol.payload import EXPIRED_BELOW, HIDDEN
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import stream_of
from operators.protocol.streams import JoinStream
from operators.query.errors import JoinError
from operators.query.kinds import Kind
from operators.query.orderings import Ordering, is_aligned, open_until
from operators.results.aggregated_rows import aggregate_maker
from operators.results.pair_filter import PairFilter, bind_filter
from operators.results.probe_rows import ProbeRows, ProbeStep
from operators.results.result_kinds import AnyResults, ResultMaker, result_maker
from operators.results.result_order import Answer, SideAnswers, WaitingAnswers, pairs_of
from operators.results.result_rows import ResultRows
from operators.results.result_times import EVENT_TIME, ResultTimes
from operators.routing.pair_check import PairCheck
from operators.values.selection import Selection
from topology import (
    DEFAULT_STREAM,
    Batch,
    Bolt,
    Component,
    Emit,
    Origin,
    Punctuation,
    Task,
    TaskContext,
    Time,
    Watermark,
)

RESULT_ROWS = 1 << 18
"""The most rows of one result batch."""


@dataclass(frozen=True)
class Collector(Bolt):
    """Shows the selected columns of both sides.

    checks:    for each alternative of the condition the part that its keys do not decide.
    answering: the elements that answer for each alternative.
    timed:     results have an event time, and watermarks follow them.
    time_of:   the side whose row gives a result its event time; None: its place (see `ResultTimes`).
    """

    selection: Selection
    ordering: Ordering = "strict"
    checks: tuple[PairCheck, ...] = ()
    answering: tuple[tuple[str, ...], ...] = ()
    router: str = "router"
    timed: bool = False
    time_of: int | None = None
    beside = "sinks"

    @property
    def unordered_streams(self) -> frozenset[str]:  # type: ignore[override]
        """Results are in the order of their places, unless the ordering is weaker."""
        in_order = self.time_of is None and is_aligned(self.ordering)
        return frozenset() if in_order or not self.timed else frozenset({DEFAULT_STREAM})

    @property
    def note(self) -> str:
        order = f"order: {self.ordering}"
        return order if self.selection.kind is Kind.INNER else f"{self.selection.kind}, {order}"

    def durable(self) -> Component:
        if self.ordering != "strict":
            raise JoinError(
                f"ordering: with a state, results come in strict order, so that they are the same after a failure: "
                f"leave ordering={self.ordering!r} out of the join"
            )
        return self

    def build(self, context: TaskContext) -> Task:
        return CollectorTask(self, context.origins)


class CollectorTask(Task):
    """Holds the answers until they may be emitted."""

    merges_watermarks = False

    def __init__(self, description: Collector, origins: tuple[Origin, ...]) -> None:
        self._ordering: Ordering = description.ordering
        # a count is complete when all elements have answered
        self._aligned = is_aligned(description.ordering) or description.selection.kind.counts_on_arrival
        self._router = next(origin.index for origin in origins if origin.component == description.router)
        self._checks = _checks_by_origin(description, origins)
        self._filters: dict[int, PairFilter | None] | None = None
        self._bound: list[PairFilter] = []
        self._reached = [-1] * len(origins)
        self._complete = -1
        self._answered = 0  # rows whose results have been emitted
        self._waiting = (WaitingAnswers(), WaitingAnswers())
        self._probes = (ProbeRows(), ProbeRows())
        self._rows = ResultRows(description.selection)
        self._results = _result_maker(description)
        self._aggregates = description.selection.kind.is_aggregate  # which take the matches of a row in any order
        self._times = ResultTimes(description.time_of) if description.timed else None
        self._promised: Time | None = None
        self._limits: deque[Limits] = deque()
        self._router_reached: deque[int] = deque()
        self._step_end = self._punctuated = -1  # the last step that is complete, and the last that was said to be
        self._emitted = 0

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        stream = stream_of(batch.stream)
        match stream.kind:
            case JoinStream.MATCHES:
                side = stream.side
                assert batch.first >= self._probes[side].first, "an element has punctuated before it had answered"
                answer = Answer(origin.index, batch.first, matches_of(batch), answered_rows(batch))
                self._waiting[side].append(answer)
                return () if self._aligned else self._emit_open()
            case JoinStream.COUNTS:
                self._results.count(stream.side, batch.first, counts_of(batch), answered_rows(batch))
            case JoinStream.TOTALS:
                self._results.total(batch.first, batch.rows.columns)
            case JoinStream.PAYLOAD:
                self._take_payload(stream.side, batch)
            case JoinStream.EXPIRED:
                self._results.expire(stream.side, ExpiredRows.from_batch(batch))
            case JoinStream.LIMITS:
                self._limits.append(Limits.from_batch(batch))
            case _:
                raise AssertionError(f"the collector takes no {batch.stream}")
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        self._reached[origin.index] = punctuation.seq
        if origin.index == self._router:
            self._router_reached.append(punctuation.seq)
        complete = min(self._reached)
        if complete > self._complete:
            return self._advance(complete, punctuation.born)
        return () if self._aligned else self._emit_open()

    def _advance(self, complete: int, born: float) -> Iterator[Emit]:
        """Emit what need not wait, the results of the rows that are complete now, and what waited for these."""
        yield from self._emit_open()
        yield from self._emit_complete(complete, born)
        self._answered = complete + 1
        yield from self._promise()
        if self._step_end > self._punctuated:  # elements may answer parts of a step
            self._punctuated = self._step_end
            yield Emit(Punctuation(self._step_end, born))
        yield from self._emit_open()

    def on_end(self) -> Iterable[Emit]:
        return self._emit(self._results.end(), 0.0)

    def blocked(self, origin: Origin) -> bool:
        """Block inputs that are ahead and whose answers cannot be emitted yet.

        The router may run ahead where answers wait only for their payload, not for each other. The slowest element,
        whose inbox is bounded, holds it back.
        """
        if self._reached[origin.index] <= self._complete:
            return False
        if self._aligned:
            return True
        return any(waiting.holds(origin.index) for waiting in self._waiting)

    def metrics(self) -> Mapping[str, float]:
        return {
            "results": float(self._emitted),
            "answered": float(self._answered),
            "payload_bytes": float(self._rows.nbytes + self._results.nbytes),
            "checked_pairs": float(sum(check.tested for check in self._bound)),
        }

    def check_invariants(self) -> None:
        # every input has reached `complete`
        assert self._complete == min(self._reached)
        for side in (LEFT, RIGHT):
            # nothing waits that could have been emitted
            first = self._waiting[side].first
            assert first is None or first >= self._probes[side].end(self._passing)
        self._results.check_invariants()

    @property
    def _passing(self) -> int:
        """The last sequence number whose results may be emitted at once: its group is open and its payload is here."""
        if self._aligned:
            return self._complete
        return min(open_until(self._ordering, self._complete), self._reached[self._router])

    def _take_payload(self, side: int, batch: Batch) -> None:
        rows = batch.rows
        names = rows.schema.names
        if rows.num_rows:
            seqs = values_of(rows.column(SEQ))
            left, right = (values_of(rows.column(name)) if name in names else None for name in EXPIRED_BELOW)
            self._probes[side].append(ProbeStep(batch.first, seqs, batch.born, (left, right)))
            hidden = rows.column(HIDDEN).to_numpy(zero_copy_only=False) if HIDDEN in names else None
            self._results.arrive(side, seqs, hidden)
        if self._times is not None:
            self._times.append(side, rows.column(TIME))
        payload = rows.select([number for number, name in enumerate(names) if not name.startswith("#")])
        self._rows.append(side, payload)
        self._results.take_payload(side, payload)
        for check in self._bound:
            check.take(side, payload)

    def _emit_open(self) -> Iterator[Emit]:
        """Emit the answers that need not wait for other elements, in order of arrival; their payload must be here."""
        if self._aligned:
            return
        for side in (LEFT, RIGHT):
            probes = self._probes[side]
            for answer in self._waiting[side].take(probes.end(self._passing)):
                answer = self._settled(side, answer)
                if len(answer.matches.positions):
                    yield from self._emit(self._results.pairs(*pairs_of(side, answer)), probes.born(answer.first))

    def _emit_complete(self, complete: int, born: float) -> Iterator[Emit]:
        """Emit the results of the probe rows up to sequence number `complete` that were not emitted early."""
        self._complete = complete
        ordered = self._ordering == "strict" and not self._aggregates
        taken, told = [], []
        for side in (LEFT, RIGHT):
            end = self._probes[side].end(complete)
            rows = self._probes[side].take(end)
            if self._times is not None:
                self._times.reach(side, end)
            answers = [self._settled(side, answer) for answer in self._waiting[side].take(end)]
            taken.append(rows)
            told.append(SideAnswers(answers, rows.first, end, ordered))
        results = self._results.of_answers((taken[LEFT], taken[RIGHT]), (told[LEFT], told[RIGHT]), ordered)
        yield from self._emit(results, born)
        self._forget(complete)

    def _settled(self, side: int, answer: Answer) -> Answer:
        """The matches of an answer that satisfy the whole condition, which keys may not decide."""
        check = self._filter(answer.origin)
        if check is None or not len(answer.matches.positions):
            return answer
        return check.keep(side, answer)

    def _filter(self, origin: int) -> PairFilter | None:
        if self._filters is None:
            schemas = self._rows.schemas
            if schemas is None:  # one side has no rows, so there are no pairs
                return None
            bound = {id(check): bind_filter(check.predicate, schemas, self._rows) for check in self._checks.values()}
            self._filters = {index: bound[id(check)] for index, check in self._checks.items()}
            self._bound = [each for each in bound.values() if each is not None]
        return self._filters.get(origin)

    def _emit(self, results: AnyResults, born: float) -> Iterator[Emit]:
        for start in range(0, len(results), RESULT_ROWS):
            part = results.part(start, start + RESULT_ROWS)
            rows = self._rows.of(part)
            if self._times is not None:
                rows = rows.append_column(EVENT_TIME, self._times.of(part))
            yield Emit(Batch(DEFAULT_STREAM, rows, first=self._emitted, born=born))
            self._emitted += rows.num_rows

    def _promise(self) -> Iterator[Emit]:
        """Emit a watermark if the event time of all results that follow has risen."""
        time = None if self._times is None else self._times.promise
        if time is not None and (self._promised is None or time > self._promised):
            self._promised = time
            yield Emit(Watermark(time, DEFAULT_STREAM))

    def _forget(self, complete: int) -> None:
        """Drop the payload that no later probe row can meet, by the limits of the last complete step."""
        while self._router_reached and self._router_reached[0] <= complete:
            self._step_end = self._router_reached.popleft()
            limits = self._limits.popleft()
            for side in (LEFT, RIGHT):
                needed = self._results.needed_from(side)
                dead = min(limits.live[side], self._probes[side].first)
                dead = dead if needed is None else min(dead, needed)
                self._rows.drop_before(side, dead)
                self._results.drop_before(side, dead)
                if self._times is not None:
                    self._times.drop_before(side, dead)


def _result_maker(description: Collector) -> ResultMaker:
    selection = description.selection
    if selection.kind.is_aggregate:
        return aggregate_maker(selection, description.timed)
    return result_maker(selection.kind, description.timed)


def _checks_by_origin(description: Collector, origins: tuple[Origin, ...]) -> dict[int, PairCheck]:
    return {
        origin.index: check
        for check, names in zip(description.checks, description.answering, strict=True)
        for origin in origins
        if origin.component in names
    }
