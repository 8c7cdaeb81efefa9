"""PanJoin's worker: holds subwindows of both sides and carries out the manager's commands (section III-A).

In: commands from the manager, then a punctuation. Out: the matches of every probe row with the rows held here, as
positions or as records for the mirror, with the worker's status; then the punctuation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from indexes import Matches, prepare_kernels
from operators.engines.pan_join.commands import Create, Expire, Insert, Probe, Status
from operators.engines.pan_join.records import find_records
from operators.engines.pan_join.streams import RECORDS, PanStream
from operators.engines.pan_join.structures import SubwindowStructure
from operators.engines.pan_join.subwindow import Subwindow, probe_subwindows
from operators.engines.shared.answering import Answering
from operators.engines.shared.steps import Step
from operators.protocol.element_rows import ElementRows
from operators.protocol.limits import Limits
from operators.protocol.sides import LEFT, RIGHT
from operators.protocol.stream_ids import outputs_of, stream_of
from operators.protocol.streams import MATCHES
from topology import Batch, Bolt, Emit, Origin, Punctuation, Task, TaskContext


@dataclass(frozen=True)
class SubwindowSetting:
    """How subwindows are made, and which dimension they index."""

    structure: SubwindowStructure
    negated: tuple[bool, ...]
    key: int


@dataclass(frozen=True)
class PanWorker(Bolt):
    """One of the workers that the manager commands; it answers with positions, or with records for the mirror."""

    setting: SubwindowSetting
    ordered: bool
    records: bool = False

    @property
    def outputs(self) -> Mapping[str, pa.Schema | None]:
        return outputs_of(RECORDS if self.records else MATCHES)

    @property
    def note(self) -> str:
        return f"{self.setting.structure}, answers with {'records' if self.records else 'positions'}"

    def prepare(self) -> None:
        prepare_kernels()

    def build(self, context: TaskContext) -> Task:
        return PanWorkerTask(self)


class HeldSubwindows:
    """The subwindows of both sides that one element holds, as the commands make them; oldest first."""

    def __init__(self, setting: SubwindowSetting) -> None:
        self._setting = setting
        self.sides: tuple[dict[int, Subwindow], dict[int, Subwindow]] = ({}, {})
        self._dead = [0, 0]

    def take(self, batch: Batch) -> None:
        """Carry out a command to create, to insert or to expire."""
        match stream_of(batch.stream).kind:
            case PanStream.INSERT:
                insert = Insert.from_batch(batch)
                self.sides[insert.side][insert.number].insert(insert)
            case PanStream.CREATE:
                create = Create.from_batch(batch)
                held = self.sides[create.side]
                previous = held[max(held)].subindex if held else None
                setting = self._setting
                held[create.number] = Subwindow(create, setting.structure, len(setting.negated), setting.key, previous)
            case PanStream.EXPIRE:
                expire = Expire.from_batch(batch)
                gone = self.sides[expire.side].pop(expire.number)
                self._dead[expire.side] = gone.first + gone.capacity
            case _:
                raise AssertionError(f"{batch.stream} is not about a subwindow")

    def probe(self, side: int, rows: ElementRows, limit: int, ordered: bool) -> Matches | None:
        """The matches of a side's rows among those held of the other side; None if more than `limit`."""
        held = list(self.sides[1 - side].values())
        return probe_subwindows(held, rows.intervals, rows.live, self._setting.key, limit, ordered)

    def status(self, side: int, rows: ElementRows) -> Status:
        """The status of a side's subwindows, when `rows` of the other side have been answered."""
        held = list(self.sides[side].values())
        if not held:
            return Status()
        oldest_empty = held[0].end <= int(rows.live.start[-1])
        return Status(len(held), sum(each.rows for each in held), int(held[-1].full), int(oldest_empty))

    def metrics(self) -> Mapping[str, float]:
        left, right = (list(held.values()) for held in self.sides)
        return {
            "left_subwindows": float(len(left)),
            "right_subwindows": float(len(right)),
            "left_rows": float(sum(each.rows for each in left)),
            "right_rows": float(sum(each.rows for each in right)),
            "index_bytes": float(sum(each.nbytes for each in [*left, *right])),
        }

    def check_invariants(self) -> None:
        for side in (LEFT, RIGHT):
            held = self.sides[side]
            # Subwindows are held in the order in which they were created.
            assert list(held) == sorted(held)
            for number, subwindow in held.items():
                # Only the newest has room left.
                assert subwindow.full or number == max(held)
                # None is older than one that has expired.
                assert subwindow.first >= self._dead[side]
                subwindow.check_invariants()


class PanWorkerTask(Task):
    """Stores rows as they come, and answers probes at the punctuation, when the rows of both sides are stored."""

    def __init__(self, description: PanWorker) -> None:
        self._negated = description.setting.negated
        self._ordered = description.ordered
        self._records = description.records
        self._held = HeldSubwindows(description.setting)
        self._rows: list[ElementRows | None] = [None, None]
        self._answering = Answering()

    def on_batch(self, batch: Batch, origin: Origin) -> Iterable[Emit]:
        if stream_of(batch.stream).kind is PanStream.PROBE:
            probe = Probe.from_batch(batch, self._negated)
            assert self._rows[probe.side] is None, "a batch has one probe command for each side"
            self._rows[probe.side] = probe.rows
        else:
            self._held.take(batch)
        return ()

    def on_punctuation(self, punctuation: Punctuation, origin: Origin) -> Iterable[Emit]:
        step = Step(Limits(), (self._rows[LEFT], self._rows[RIGHT]), punctuation)
        self._rows = [None, None]
        return self._reply_records(step) if self._records else self._reply(step)

    def metrics(self) -> Mapping[str, float]:
        return self._held.metrics()

    def check_invariants(self) -> None:
        self._held.check_invariants()

    def _reply(self, step: Step) -> Iterator[Emit]:
        statuses = self._statuses(step)
        for emit in self._answering.answer(step, self._probe):
            if isinstance(emit.message, Batch):
                status = statuses[stream_of(emit.message.stream).side]
                yield Emit(emit.message.with_labels(*status.labels))
            else:
                yield emit

    def _reply_records(self, step: Step) -> Iterator[Emit]:
        statuses = self._statuses(step)
        for side, rows in enumerate(step.rows):
            if rows is not None:
                for record in find_records(side, rows, self._held.sides[1 - side]):
                    yield Emit(record.to_batch(statuses[side]))
        yield Emit(step.last)

    def _statuses(self, step: Step) -> list[Status]:
        """The status of the subwindows that the rows of either side have probed."""
        return [Status() if rows is None else self._held.status(1 - side, rows) for side, rows in enumerate(step.rows)]

    def _probe(self, side: int, rows: ElementRows, most: int) -> Matches | None:
        return self._held.probe(side, rows, most, self._ordered)
