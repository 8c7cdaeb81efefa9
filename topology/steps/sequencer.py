"""The sequencer: puts the rows of all inputs into steps, in the order in which they come.

It stands behind the inputs of a topology that keeps a state and has no gate. What comes together is a matter of timing,
so a step is a decision, which the journal records. Everything after the sequencer is a function of its steps.

In: batches of each input; sources that open, promise times, fall silent and end; ticks of the clock. Out: for each step
the sources that open in it; the batches of each input, by source and offset, on a stream that is called like the input;
what else was said about sources; then the end of the step, with the time of a tick. Sources open before the batches, so
that rows of one are not late for those of another in the same step. A step has all that has come since the last one. So
steps grow with the backlog. A tick ends a step, and is recorded with it: so tasks hear of the same times after a
failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from topology.graph.components import (
    DEFAULT_STREAM,
    Bolt,
    DecidingTask,
    Decision,
    Emit,
    Facts,
    Origin,
    Task,
    TaskContext,
    TaskState,
)
from topology.graph.event_time import time_as_json, time_bounds, time_from_json
from topology.graph.messages import Batch, End, Idle, Message, StepEnd, Time, Watermark

STEP_ROWS = 1 << 16
STEP_BYTES = 1 << 20
"""A step with as many rows or bytes leaves although more rows wait. Edges after the sequencer hold whole steps."""


@dataclass(frozen=True)
class Sequencer(Bolt):
    """Puts the rows of the inputs of a topology into steps.

    event_time: each input, with its event-time column; None: the row's number is its time.
    ticks:      seconds between two ticks that tasks downstream ask for; None: nobody does.
    """

    event_time: tuple[tuple[str, str | None], ...]
    ticks: float | None = None
    beside = "inputs"
    decides = True

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return {stream: None for stream, _ in self.event_time}

    @property
    def note(self) -> str:
        ticks = "" if self.ticks is None else f", a tick every {self.ticks:g} s"
        return f"steps in the order of arrival{ticks}, kept in the log"

    @property
    def tick_seconds(self) -> float | None:
        return self.ticks

    def build(self, context: TaskContext) -> Task:
        return SequencerTask(dict(self.event_time))

    def start_for(self, starts: Sequence[Facts], acknowledged: Facts) -> int:
        return max((number for number, start in enumerate(starts) if _seq(start) <= _seq(acknowledged)), default=0)


def _seq(reached: Facts) -> int:
    seq: int = reached.get("seq", -1)
    return seq


@dataclass
class _Source:
    """What is known of a physical source.

    time:  the last that it promised.
    bound: how far its times may go backwards, if it has said so itself.
    idle:  whether it has said that it is silent, and nothing since.
    open:  whether tasks have been told in this life that it holds time back.
    """

    time: Time | None = None
    ended: bool = False
    bound: Time | None = None
    idle: bool = False
    open: bool = False


class SequencerTask(DecidingTask):
    """Holds what has come since the last step. What is said twice is passed on once: a new life hears it again."""

    def __init__(
        self, event_time: Mapping[str, str | None], step_rows: int = STEP_ROWS, step_bytes: int = STEP_BYTES
    ) -> None:
        self._event_time = event_time
        self._step_rows = step_rows
        self._step_bytes = step_bytes
        self._sources: dict[str, dict[str, _Source]] = {stream: {} for stream in event_time}
        self._finished: set[str] = set()
        self._taken: dict[tuple[str, str], list[Batch]] = {}
        self._said: list[Message] = []
        self._rows = self._bytes = 0
        self._seq = -1
        self._choice: dict[str, Any] = {}
        self._step_rows_taken: dict[tuple[str, str], tuple[int | None, int]] = {}
        self._clock: float | None = None
        self._told: float | None = None  # the time of the last tick: it never goes back

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        self.take(batch, origin)
        is_full = self._rows >= self._step_rows or self._bytes >= self._step_bytes
        return self._step() if is_full else ()

    def take(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        self._sources[origin.component].setdefault(batch.source, _Source())
        if not batch.num_rows:
            return ()  # the log has none either
        self._sources[origin.component][batch.source].idle = False
        self._drop_idle(origin.component, batch.source)
        self._taken.setdefault((origin.component, batch.source), []).append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        return ()

    def on_watermark(self, watermark: Watermark, origin: Origin) -> Iterable[Emit]:
        self._hear(Watermark(watermark.time, origin.component, watermark.source, watermark.bound))
        return ()

    def on_source_idle(self, idle: Idle, origin: Origin) -> Iterable[Emit]:
        self._hear(Idle(origin.component, idle.source))
        return ()

    def on_source_end(self, end: End, origin: Origin) -> Iterable[Emit]:
        self._hear(End(origin.component, end.source))
        return ()

    def on_input_end(self, origin: Origin) -> Iterable[Emit]:
        self._hear(End(origin.component))
        return ()

    def on_idle(self) -> Iterable[Emit]:
        return self._step() if self._rows or self._said else ()

    def on_tick(self, seconds: float) -> Iterable[Emit]:
        self._clock = seconds if self._told is None else max(seconds, self._told)
        return self._step()

    def on_end(self) -> Iterable[Emit]:
        return self.on_idle()

    @property
    def decision(self) -> Decision:
        return Decision(self._seq, self._choice, {"seq": self._seq})

    @property
    def step_rows(self) -> Mapping[tuple[str, str], tuple[int | None, int]]:
        return self._step_rows_taken

    def repeat(self, choice: Facts) -> Iterable[Emit]:
        self._said = [_read(said) for said in choice.get("said", ())]
        for said in self._said:
            self._note(said)
        self._clock = choice.get("clock")
        return self._step()

    def state(self) -> TaskState:
        assert not self._taken, "a state is asked for between two steps"
        sources = {
            stream: {
                name: [time_as_json(source.time), source.ended, time_as_json(source.bound)]
                for name, source in sources.items()
            }
            for stream, sources in self._sources.items()
        }
        return TaskState({"seq": self._seq, "sources": sources, "finished": sorted(self._finished), "told": self._told})

    def resume(self, state: TaskState) -> Iterable[Emit]:
        facts = state.facts
        self._seq = facts["seq"]
        self._finished = set(facts["finished"])
        self._told = facts.get("told")
        for stream, sources in facts["sources"].items():
            for name, (time, ended, bound) in sources.items():
                self._sources[stream][name] = _Source(time_from_json(time), ended, time_from_json(bound))
        yield Emit(StepEnd(self._seq))

    @property
    def state_bytes(self) -> int:
        return self._bytes

    def metrics(self) -> Mapping[str, float]:
        return {"sequenced": float(self._seq + 1)}

    def check_invariants(self) -> None:
        # what is held is what has been counted
        assert self._rows == sum(batch.num_rows for batches in self._taken.values() for batch in batches)
        # nothing is held of a source that nobody knows
        assert all(name in self._sources[stream] for stream, name in self._taken)

    def _hear(self, said: Message) -> None:
        if self._note(said):
            if isinstance(said, Watermark):
                self._drop_idle(said.stream, said.source)
            self._said.append(said)

    def _drop_idle(self, stream: str, source: str) -> None:
        """Forget that a source was silent within this step: it would be passed on behind what came later."""
        if Idle(stream, source) in self._said:
            self._said.remove(Idle(stream, source))

    def _note(self, said: Message) -> bool:
        """Take in what is said about a source; return whether it is news."""
        assert isinstance(said, Watermark | Idle | End)
        if isinstance(said, End) and not said.source:
            news = said.stream not in self._finished
            self._finished.add(said.stream)
            return news
        sources = self._sources[said.stream]
        known = sources.get(said.source)
        if known is None and said.source:
            known = sources[said.source] = _Source()
            news = True
        else:
            news = isinstance(said, Idle) != (known is not None and known.idle)
        if known is not None:
            known.idle = isinstance(said, Idle)
        if known is not None and isinstance(said, Watermark) and said.time is not None:
            news |= known.time is None or said.time > known.time
            known.time = said.time if known.time is None else max(known.time, said.time)
        if known is not None and isinstance(said, Watermark) and said.bound is not None:
            news |= known.bound != said.bound
            known.bound = said.bound
        if known is not None and isinstance(said, End):
            news |= not known.ended
            known.ended = True
        return news

    def _step(self) -> Iterator[Emit]:
        taken, said = self._taken, self._said
        self._step_rows_taken = {place: (batches[0].first, batches[-1].end) for place, batches in taken.items()}
        clock, self._clock = self._clock, None
        self._taken, self._said = {}, []
        self._seq += self._rows + len(said) + (clock is not None)
        self._rows = self._bytes = 0
        self._choice = {"said": [_written(message) for message in said]} if said else {}
        if clock is not None:
            self._told = self._choice["clock"] = clock
        born = min((batch.born for batches in taken.values() for batch in batches if batch.born), default=0.0)
        yield from self._opened(taken, said)
        for stream in self._sources:
            for source in sorted(name for of, name in taken if of == stream):
                for batch in taken[stream, source]:
                    times = batch.times or time_bounds(batch.rows, self._event_time[stream], batch.first)
                    yield Emit(Batch(stream, batch.rows, batch.first, source, times, batch.born))
        for message in said:
            if not _opens(message):
                yield Emit(message)
            if isinstance(message, Idle) and message.source:
                self._sources[message.stream][message.source].open = False
        yield Emit(StepEnd(self._seq, born, clock))

    def _opened(self, taken: Iterable[tuple[str, str]], said: Iterable[Message]) -> Iterator[Emit]:
        """Announce the sources of a step that hold time back from now on."""
        opening = {(each.stream, each.source): each for each in said if isinstance(each, Watermark) and _opens(each)}
        for stream, source in {**opening, **dict.fromkeys(sorted(taken))}:
            known = self._sources[stream].setdefault(source, _Source())
            if not known.open or (stream, source) in opening:
                known.open = True
                yield Emit(opening.get((stream, source), Watermark(None, stream, source)))


def _opens(said: Message) -> bool:
    return isinstance(said, Watermark) and said.time is None


def _written(said: Message) -> list[Any]:
    """A message about a source as JSON."""
    match said:
        case Watermark(time, stream, source, bound):
            return ["time", stream, source, time_as_json(time), time_as_json(bound)]
        case Idle(stream, source):
            return ["idle", stream, source]
        case End(stream, source):
            return ["end", stream, source]
    raise AssertionError(f"a step does not hold {said!r}")


def _read(written: Sequence[Any]) -> Message:
    """The inverse of `_written`."""
    kind, stream, source, *rest = written
    if kind == "time":
        time, bound = (*map(time_from_json, rest), None)[:2]
        return Watermark(time, stream, source, bound)
    return Idle(stream, source) if kind == "idle" else End(stream, source)


def as_sent(message: Batch | Watermark | Idle | End) -> Batch | Watermark | Idle | End:
    """A message of a step as it would have come from its input itself."""
    match message:
        case Batch(_, rows, first, source, times, born):
            return Batch(DEFAULT_STREAM, rows, first, source, times, born)
        case Watermark(time, _, source, bound):
            return Watermark(time, DEFAULT_STREAM, source, bound)
        case Idle(_, source):
            return Idle(DEFAULT_STREAM, source)
        case End(_, source):
            return End(DEFAULT_STREAM, source)
